"""Models as safetensors files: bit-identical there and back, with their tokenizers, and named when they are damaged."""

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.flax
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from toy_saved import PartConfig, Quiet, Toy, ToyConfig, filled

from plainformer.models.config import StackConfig
from plainformer.models.decoder import Decoder, DecoderConfig
from plainformer.models.encoder import Encoder, EncoderConfig, RowEncoder
from plainformer.models.pretraining import ClassifierConfig, EncoderClassifier
from plainformer.tokens.bpe import BytePairEncoder
from plainformer.tokens.vocabulary import Vocabulary
from plainformer.training.arrays import digest, named_arrays, to_json, with_arrays
from plainformer.training.checkpoint import save_checkpoint
from plainformer.training.saving import load_model, model_bytes, save_model

CONFIG = ToyConfig(first=PartConfig(width=4), second=PartConfig(num_layers=1), is_tied=False)
VOCABULARY = Vocabulary.from_characters("abcd", special=["<other>", "<stop>"], unknown="<other>")


def same(one, other) -> bool:
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        a.dtype == b.dtype and a.shape == b.shape and (a == b).all()
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file, and the model in it; never written to."""
    path = tmp_path_factory.mktemp("models") / "toy.safetensors"
    save_model(path, filled(Toy, CONFIG))
    return path


@pytest.mark.parametrize("config", [ToyConfig(), CONFIG, dataclasses.replace(CONFIG, second=None)])
def test_load_model_returns_what_save_model_wrote(tmp_path, config):
    model, path = filled(Toy, config), tmp_path / "any.name.safetensors"
    save_model(path, model)
    found = load_model(str(path), Toy)
    assert same(found, model)
    assert found.config == config
    assert json.loads((tmp_path / "any.name.json").read_text()) == dataclasses.asdict(config)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["any.name.json", "any.name.safetensors"]


@pytest.mark.parametrize(
    ("other", "sizes"),
    [
        *(({}, {"position_scheme": scheme}) for scheme in ("learned", "rotary", "relative", "alibi", "none")),
        ({"tied_embedding": False}, {"use_bias": False, "num_kv_heads": 3}),
        ({}, {"norm": "rms", "norm_placement": "post", "activation": "swiglu", "dropout_rate": 0.1}),
        ({}, {"norm_placement": "sandwich", "qk_norm": True, "qk_norm_over": "row"}),
        ({}, {"pattern": ("delta", "full")}),
        ({}, {"window": 2, "pattern": ("full", "window"), "sinks": True}),
    ],
)
def test_load_model_returns_decoders_of_every_kind(tmp_path, other, sizes):
    stack = StackConfig(d_model=24, num_layers=1, num_heads=6, d_ff=8, **sizes)
    config = DecoderConfig(vocab_size=7, context_len=5, stack=stack, **other)
    model = filled(Decoder, config)
    save_model(tmp_path / "decoder.safetensors", model)
    found = load_model(tmp_path / "decoder.safetensors", Decoder)
    assert same(found, model)
    assert found.config == config


def test_loaded_model_computes_the_same(tmp_path):
    model, tokens = filled(Toy, ToyConfig()), jnp.array([1, 6, 2])
    save_model(tmp_path / "toy.safetensors", model)
    assert (load_model(tmp_path / "toy.safetensors", Toy)(tokens) == model(tokens)).all()


def test_save_model_names_tensors_by_their_place(saved):
    tensors, model = load_file(saved), filled(Toy, CONFIG)
    assert sorted(tensors) == ["embedding", *(f"layers.{number}.weight" for number in range(3)), "output"]
    assert (tensors["layers.1.weight"] == model.layers[1]["weight"]).all()


def test_save_model_takes_numpys_numbers_in_the_configuration(tmp_path):
    path = tmp_path / "x.safetensors"
    config = ToyConfig(vocab_size=np.int64(7), first=PartConfig(width=np.int32(4)))
    save_model(path, filled(Toy, config))
    assert load_model(path, Toy).config == config
    assert to_json(config) == to_json(ToyConfig(first=PartConfig(width=4)))


@pytest.mark.parametrize("tokenizer", [VOCABULARY, BytePairEncoder.train("ab abc abcd " * 9, 262, special=["<stop>"])])
def test_load_model_returns_the_tokenizer_too(tmp_path, tokenizer):
    model = filled(Toy, ToyConfig(vocab_size=len(tokenizer)))
    save_model(tmp_path / "toy.safetensors", model, tokenizer)
    found, again = load_model(tmp_path / "toy.safetensors", Toy)
    assert same(found, model)
    assert type(again) is type(tokenizer)
    assert again.to_json() == tokenizer.to_json()
    assert again.special == tokenizer.special
    assert again.encode("dabc") == tokenizer.encode("dabc")


def test_load_model_leaves_the_tokenizer_out_or_insists_on_it(tmp_path):
    model, path = filled(Toy, CONFIG), tmp_path / "both.safetensors"
    save_model(path, model, VOCABULARY)
    assert isinstance(load_model(path, Toy, tokenizer=False), Toy)
    assert isinstance(load_model(path, Toy, tokenizer=True)[0], Toy)
    save_model(path, model)
    assert isinstance(load_model(path, Toy), Toy)
    with pytest.raises(ValueError, match=r"both\.safetensors holds no tokenizer; expected one, as save_model\(path"):
        load_model(path, Toy, tokenizer=True)


def test_save_model_refuses_a_tokenizer_that_could_not_be_read_back(tmp_path):
    class Own:
        """With `to_json`, but of a kind that nobody reads."""

        def to_json(self):
            return '{"mine": 1}'

        def __len__(self):
            return 1

    with pytest.raises(ValueError, match="mine"):
        save_model(tmp_path / "own.safetensors", filled(Toy, CONFIG), Own())
    assert not list(tmp_path.iterdir())


def test_load_model_notices_an_altered_tokenizer(tmp_path):
    path = tmp_path / "toy.safetensors"
    save_model(path, filled(Toy, CONFIG), VOCABULARY)
    assert path.read_bytes().count(rb"\"a\"") == 1
    path.write_bytes(path.read_bytes().replace(rb"\"a\"", rb"\"e\""))
    with pytest.raises(ValueError, match=r"toy.safetensors is damaged, or .*: its numbers or its config are not those"):
        load_model(path, Toy)


def test_save_model_takes_a_tokenizer_where_the_model_has_no_vocabulary(tmp_path):
    encoder = filled(RowEncoder, EncoderConfig(context_len=3, d_in=4, stack=StackConfig(d_model=12, num_heads=3)))
    save_model(tmp_path / "encoder.safetensors", encoder, VOCABULARY)
    _, again = load_model(tmp_path / "encoder.safetensors", RowEncoder)
    assert again.to_json() == VOCABULARY.to_json()


def test_save_model_refuses_a_tokenizer_of_another_model(tmp_path, unchecked):
    with pytest.raises(ValueError, match=r"^tokenizer has 6 tokens; expected that of the model, with vocab_size=5"):
        save_model(tmp_path / "toy.safetensors", filled(Toy, ToyConfig(vocab_size=5)), VOCABULARY)
    with pytest.raises(TypeError, match=r"^tokenizer is a str; expected a Vocabulary or a BytePairEncoder"):
        save_model(tmp_path / "toy.safetensors", filled(Toy, CONFIG), "abc")
    assert not list(tmp_path.iterdir())


@pytest.mark.gate
def test_load_model_notices_a_file_cut_short(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "cut.safetensors"
    for length in [*range(0, 24, 5), *np.linspace(24, len(content) - 1, 40).astype(int).tolist()]:
        path.write_bytes(content[:length])
        with pytest.raises(
            ValueError, match=rf"^{path} is damaged, or no file of save_model: .*short, or a web page\? Get it again\.$"
        ):
            load_model(path, Toy)


def test_load_model_notices_every_altered_byte(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "altered.safetensors"
    model = load_model(saved, Toy)
    for place in range(0, len(content), 2):
        altered = bytearray(content)
        altered[place] ^= 1 << place % 7
        path.write_bytes(altered)
        try:
            found = load_model(path, Toy)
        except ValueError as error:
            said = str(error)
        else:  # such as white space at the end of the header, where it may be anything
            said = str(path) if same(found, model) else "a changed model, silently"
        assert said.startswith(str(path)), f"byte {place}: {said}"


def test_load_model_notices_an_altered_configuration(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "altered.safetensors"
    # The same shapes fit both: without a check, this would be another model.
    assert content.count(rb"\"gelu\"") == 2
    path.write_bytes(content.replace(rb"\"gelu\"", rb"\"silu\"", 1))
    with pytest.raises(
        ValueError, match=r"altered.safetensors is damaged, or .*its numbers or its config are not those"
    ):
        load_model(path, Toy)


def test_load_model_names_what_is_not_a_model(saved, tmp_path, unchecked):
    path = tmp_path / "x.safetensors"
    with pytest.raises(FileNotFoundError, match=rf"There is no file {path.name} in {path.parent}"):
        load_model(path, Toy)
    path.write_text("hello, this is no such file")
    with pytest.raises(ValueError, match=r"x.safetensors is damaged, or no file of save_model: Error while deserial"):
        load_model(path, Toy)
    save_file({"weight": np.ones(3)}, path)
    with pytest.raises(ValueError, match=r"x.safetensors is damaged, or no .*: it has no config in its header\. Is it"):
        load_model(path, Toy)
    checkpoint = save_checkpoint(tmp_path, 3, {"weight": jnp.ones(3)}, {})
    with pytest.raises(
        ValueError, match=r"000003.safetensors is damaged, or no .*It is a checkpoint of fit: let fit go on from it"
    ):
        load_model(checkpoint, Toy)
    with pytest.raises(ValueError, match=r"^path is 'x.bin'; expected one that ends in .safetensors"):
        load_model("x.bin", Toy)
    with pytest.raises(ValueError, match=r"toy.safetensors holds the model Toy; expected Quiet"):
        load_model(saved, Quiet)
    with pytest.raises(TypeError, match=r"^model_class is a Toy; expected a class, such as Decoder"):
        load_model(saved, filled(Toy, CONFIG))


def written(path, config: str, **arrays):
    """A file as somebody else may write it, with the right sum."""
    save_file(arrays, path, {"model": "Toy", "config": config, "sha256": digest(arrays, config)})
    return path


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ('{"vocab_size": 7, "colour": "red"}', "colour"),
        ('{"vocab_size": 0}', "vocab_size is 0; expected at least 1"),
        ('{"first": {"colour": "red"}}', "colour"),
        ('{"first": 7}', "no attribute 'num_layers'"),
        ('{"first": {"num_layers": "many"}}', "unsupported operand"),
        ("[]", "it holds a list; expected a JSON object"),
        ("{", "Expecting property name"),
        ("[" * 200_000, "recursion"),
    ],
)
def test_load_model_names_a_configuration_that_no_model_has(tmp_path, config, reason):
    path = written(tmp_path / "odd.safetensors", config, embedding=np.ones(3))
    with pytest.raises(ValueError, match=rf"^{path} has a configuration that no Toy has: .*{reason}"):
        load_model(path, Toy)


def test_load_model_names_a_configuration_of_other_shapes(tmp_path):
    path = written(tmp_path / "odd.safetensors", "{}", embedding=np.ones((7, 3), np.float32))
    with pytest.raises(ValueError, match=r"does not fit its own config.*: layers\.0\.weight is missing, expected"):
        load_model(path, Toy)
    path = written(tmp_path / "odd.safetensors", '{"first": {"num_layers": 1}}', embedding=np.ones((7, 3), np.int32))
    with pytest.raises(ValueError, match=r"own config.*: embedding is \(7, 3\) int32, expected \(7, 3\) float32"):
        load_model(path, Toy)


def test_load_model_does_not_build_layers_that_the_file_does_not_hold(tmp_path):
    path = written(tmp_path / "huge.safetensors", '{"first": {"num_layers": 1000000000}}', embedding=np.ones(3))
    start = time.monotonic()
    with pytest.raises(ValueError, match=r"no Toy has: 1000000000 layers, but 1 tensors"):
        load_model(path, Toy)
    assert time.monotonic() - start < 5


def test_save_model_refuses_what_it_cannot_write(saved, tmp_path, monkeypatch, unchecked):
    model = filled(Toy, dataclasses.replace(CONFIG, vocab_size=8))
    with pytest.raises(ValueError, match=r"^path is 'x.bin'; expected one that ends in .safetensors"):
        save_model("x.bin", model)
    with pytest.raises(TypeError, match=r"^path is a Toy; expected a file name, such as 'decoder.safetensors', first"):
        save_model(model, "x.safetensors")
    with pytest.raises(TypeError, match=r"^dict has no config; expected a model made from one, such as a Decoder"):
        save_model(tmp_path / "x.safetensors", model.layers[0])
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*none to put x.safetensors in"):
        save_model(tmp_path / "none" / "x.safetensors", model)
    assert list(tmp_path.iterdir()) == []

    path = tmp_path / "kept.safetensors"
    save_model(path, filled(Toy, CONFIG))

    def refuse(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match=r"^cannot write .*kept.safetensors: No space left on device"):
        save_model(path, model)
    assert same(load_model(path, Toy), filled(Toy, CONFIG))
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.safetensors"]  # never the json of another model


def test_a_model_and_the_json_beside_it_never_tell_of_two(tmp_path, monkeypatch):
    path = tmp_path / "toy.safetensors"
    save_model(path, filled(Toy, CONFIG))
    replace, places = os.replace, []

    def killed_after(partial, target):
        replace(partial, target)
        places.append(target)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed_after)
    other = filled(Toy, dataclasses.replace(CONFIG, vocab_size=8))
    with pytest.raises(KeyboardInterrupt):
        save_model(path, other)
    assert places == [path]
    assert same(load_model(path, Toy), other)
    assert not path.with_suffix(".json").exists()


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_load_model_returns_a_model_of_16_bits(tmp_path, dtype):
    model = jax.tree.map(lambda leaf: leaf.astype(dtype), filled(Toy, CONFIG))
    save_model(tmp_path / "half.safetensors", model)
    assert same(load_model(tmp_path / "half.safetensors", Toy), model)


@pytest.mark.usefixtures("unchecked")
def test_save_model_refuses_another_way_to_store(tmp_path):
    with pytest.raises(ValueError, match=r"^stored_in is 'int4'; expected 'int8', or None"):
        save_model(tmp_path / "toy.safetensors", filled(Toy, CONFIG), stored_in="int4")
    assert not list(tmp_path.iterdir())


@pytest.mark.equation("eq-efficiency-int8")
def test_a_model_stored_in_8_bits_is_read_as_floats_that_are_off_by_half_a_step(tmp_path):
    model = Decoder(
        DecoderConfig(97, 16, stack=StackConfig(d_model=64, num_layers=1, num_heads=2)), key=jax.random.key(0)
    )
    model = eqx.tree_at(lambda model: model.embedding.weight, model, replace_fn=lambda weight: weight.at[:, 3].set(0))
    for name, stored_in in [("whole", None), ("small", "int8")]:
        save_model(tmp_path / f"{name}.safetensors", model, Vocabulary("abc"), stored_in=stored_in)
    sizes = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("whole", "small")]
    assert 3 * sizes[1] < sizes[0]
    found, vocabulary = load_model(tmp_path / "small.safetensors", Decoder)
    assert len(vocabulary) == 3
    for one, other in zip(jax.tree.leaves(model), jax.tree.leaves(found), strict=True):
        assert other.dtype == jnp.float32
        off = np.abs(one - other)
        assert (off <= np.abs(one).max(axis=0) / 127 / 2 * 1.001 if one.ndim == 2 else off == 0).all()
    save_model(tmp_path / "again.safetensors", found, Vocabulary("abc"), stored_in="int8")
    again = load_model(tmp_path / "again.safetensors", Decoder, tokenizer=False)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_load_model_returns_32_bits_where_64_are_the_default(saved, x64):
    found = load_model(saved, Toy)
    assert {leaf.dtype for leaf in jax.tree.leaves(found)} == {jnp.dtype("float32")}
    assert (found.embedding == load_file(saved)["embedding"]).all()


def test_load_model_returns_a_model_of_64_bits(tmp_path, x64):
    model = jax.tree.map(lambda leaf: leaf.astype(jnp.float64) / 3, filled(Toy, CONFIG))
    save_model(tmp_path / "double.safetensors", model)
    assert same(load_model(tmp_path / "double.safetensors", Toy), model)


def test_load_model_finds_the_configuration_of_a_subclass(tmp_path):
    quiet = filled(Quiet, CONFIG)
    save_model(tmp_path / "quiet.safetensors", quiet)
    found = load_model(tmp_path / "quiet.safetensors", Quiet)
    assert type(found) is Quiet
    assert same(found, quiet)


def test_save_model_refuses_parts_that_the_configuration_does_not_describe(tmp_path):
    def classifier(num_heads):
        stack = StackConfig(d_model=12, num_layers=1, num_heads=num_heads, d_ff=5)
        encoder = EncoderConfig(vocab_size=7, context_len=5, stack=stack)
        return filled(EncoderClassifier, ClassifierConfig(encoder=encoder, num_classes=3))

    four, three = classifier(4), classifier(3)
    mixed = eqx.tree_at(lambda model: model.encoder, four, three.encoder)
    with pytest.raises(ValueError, match=r"not what its config describes, so load_model would build another one"):
        save_model(tmp_path / "mixed.safetensors", mixed)
    assert not list(tmp_path.iterdir())
    same = eqx.tree_at(lambda model: model.encoder, four, filled(Encoder, four.encoder.config))
    save_model(tmp_path / "same.safetensors", same)
    assert load_model(tmp_path / "same.safetensors", EncoderClassifier).encoder.config.stack.num_heads == 4


# --- what may stand beside a model, and what comes back from it ---------------------------------------------------


def own_json(path, kind):
    """A file of the reader's own in the place of the configuration; its text."""
    if kind == "tokenizer":
        VOCABULARY.save(path)
    elif kind == "configuration of another model":
        path.write_text(to_json(dataclasses.replace(CONFIG, vocab_size=9), indent=2) + "\n")
    else:
        path.write_text({"notes": '{"mine": 1}', "no JSON": "shopping list", "nothing": ""}[kind])
    return path.read_bytes()


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("kind", ["tokenizer", "notes", "no JSON", "nothing", "configuration of another model"])
def test_save_model_replaces_no_json_but_the_configuration_of_the_model_that_it_replaces(tmp_path, kind, there):
    path = tmp_path / "toy.safetensors"
    if there:
        save_model(path, filled(Toy, CONFIG))
    text, before = own_json(path.with_suffix(".json"), kind), there and path.read_bytes()
    with pytest.raises(FileExistsError, match=r"toy\.json exists, and is not the configuration of a model in toy\.saf"):
        save_model(path, filled(Toy, dataclasses.replace(CONFIG, vocab_size=8)))
    assert path.with_suffix(".json").read_bytes() == text
    assert (path.read_bytes() if path.exists() else False) == before  # nothing was written


def test_save_model_replaces_its_own_configuration_and_names_a_folder_in_its_place(tmp_path):
    path, other = tmp_path / "toy.safetensors", dataclasses.replace(CONFIG, vocab_size=8)
    for config in (CONFIG, other, other):
        save_model(path, filled(Toy, config))
        assert json.loads(path.with_suffix(".json").read_text()) == dataclasses.asdict(config)
    path.unlink()
    save_model(path, filled(Toy, other))  # the very text may stand there
    path.with_suffix(".json").unlink()
    path.with_suffix(".json").mkdir()
    with pytest.raises(FileExistsError, match=r"toy\.json exists, and is not"):
        save_model(path, filled(Toy, CONFIG))
    assert load_model(path, Toy).config == other


def larger_vocabulary(model):
    return eqx.tree_at(lambda each: each.embedding, model, jnp.ones((9, model.embedding.shape[1])))


def in_int8(model):
    return eqx.tree_at(lambda each: each.embedding, model, model.embedding.astype(jnp.int8))


def with_adapter(model):
    return eqx.tree_at(lambda each: each.layers[0]["weight"], model, (model.layers[0]["weight"], jnp.ones(2)))


def without_output(model):
    return eqx.tree_at(lambda each: each.output, model, None)


@dataclasses.dataclass(frozen=True)
class WithTuple(ToyConfig):
    """A configuration that does not come back from JSON as it was."""

    sizes: tuple = (1, 2)


class Pair(Toy):
    """A toy of it."""

    config: WithTuple = eqx.field(static=True)


class Unsaid(eqx.Module):
    """A model that does not say which class its configuration is of."""

    weight: jax.Array

    def __init__(self, config, *, key=None):
        self.weight = jnp.ones(3)

    @property
    def config(self):
        return CONFIG


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: larger_vocabulary(filled(Toy, CONFIG)), r"not what its config .*: embedding is \(9, 4\) float32, exp"),
        (
            lambda: in_int8(filled(Toy, CONFIG)),
            r"embedding is \(7, 4\) int8, expected \(7, 4\) float32\. .*or in int8:",
        ),
        (
            lambda: with_adapter(filled(Toy, CONFIG)),
            r"layers\.0\.weight\.0 is .* with adapters .*named_arrays\(model\)",
        ),
        (lambda: without_output(filled(Toy, CONFIG)), r"output is missing, expected \(7,\) float32"),
        (lambda: filled(Pair, WithTuple()), r"^The config of this Pair would be read as WithTuple.*sizes=\[1, 2\]"),
        (
            lambda: Unsaid(CONFIG),
            r"^load_model could not build a Unsaid from its config: Unsaid does not say the class",
        ),
    ],
)
def test_save_model_refuses_what_load_model_would_refuse(tmp_path, model, message):
    with pytest.raises(ValueError, match=message):
        save_model(tmp_path / "toy.safetensors", model())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("change", [larger_vocabulary, in_int8, with_adapter])
def test_what_save_model_refuses_is_stored_as_it_says(tmp_path, change):
    model, path = change(filled(Toy, CONFIG)), tmp_path / "arrays.safetensors"
    safetensors.flax.save_file(named_arrays(model), path)
    again = with_arrays(change(filled(Toy, CONFIG, seed=1)), load_file(path))
    assert same(again, model)


def test_two_saves_of_a_model_are_the_same_bytes_in_whichever_process(tmp_path):
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from toy_saved import *\n"
        "from plainformer.tokens.vocabulary import Vocabulary\n"
        "from plainformer.training.saving import save_model\n"
        "config = ToyConfig(vocab_size=9)\n"
        "for path in sys.argv[1].split(','):\n"
        "    save_model(path, filled(Toy, config), Vocabulary('aäb, ✓'))\n"
    )
    found = []
    for seed in ("0", "1"):
        paths = [tmp_path / f"{seed}{number}.safetensors" for number in range(4)]
        command = [sys.executable, "-c", script, ",".join(map(str, paths)), *sys.path]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        found += [path.read_bytes() for path in paths]
    assert len(set(found)) == 1
    assert len(found) == 8
    with safe_open(paths[0], "numpy") as file:  # as other programs read it
        assert sorted(file.metadata()) == ["config", "model", "sha256", "tokenizer"]
    size = int.from_bytes(found[0][:8], "little")
    assert size % 8 == 0  # so that numbers lie where a program may map them
    model, vocabulary = load_model(paths[0], Toy)
    assert same(model, filled(Toy, ToyConfig(vocab_size=9)))
    assert vocabulary.decode(vocabulary.encode("✓ä")) == "✓ä"


def test_a_file_that_an_older_version_wrote_is_read(tmp_path):
    """With the header in whichever order, and compact or not, as safetensors itself writes it."""
    model, path = filled(Toy, CONFIG), tmp_path / "toy.safetensors"
    save_model(path, model)
    with safe_open(path, "numpy") as file:
        save_file(load_file(path), tmp_path / "old.safetensors", file.metadata())
    assert same(load_model(tmp_path / "old.safetensors", Toy), model)


def test_model_bytes_are_what_save_model_writes(tmp_path):
    model, path = filled(Toy, CONFIG), tmp_path / "toy.safetensors"
    save_model(path, model, VOCABULARY)
    assert path.read_bytes() == model_bytes(model, VOCABULARY)


class Constant(eqx.Module):
    """A layer with a function and a number, which are no arrays."""

    weight: jax.Array
    activation: Callable
    scale: float
    config: PartConfig = eqx.field(static=True)

    def __init__(self, config: PartConfig, *, key: jax.Array):
        self.weight, self.activation, self.scale = jnp.zeros(config.width), lambda x: x, 1.0
        self.config = config


def test_save_model_refuses_other_constants_than_the_configuration_makes(tmp_path):
    model = Constant(PartConfig(), key=jax.random.key(0))
    save_model(tmp_path / "model.safetensors", model)
    for place, other in (("scale", 5.0), ("activation", jnp.tanh)):
        changed = eqx.tree_at(lambda m, name=place: getattr(m, name), model, other)
        with pytest.raises(
            ValueError, match="is not what its config describes, so load_model would build another one: "
        ):
            save_model(tmp_path / "other.safetensors", changed)
        assert not (tmp_path / "other.safetensors").exists()
