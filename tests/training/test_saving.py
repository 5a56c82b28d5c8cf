"""Models as safetensors files: bit-identical there and back, with their tokenizers, and named when they are damaged."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from toy_saved import PartConfig, Quiet, Toy, ToyConfig, filled

from plainformer.models.config import StackConfig
from plainformer.models.decoder import Decoder, DecoderConfig
from plainformer.models.encoder import Encoder, EncoderConfig, RowEncoder
from plainformer.models.pretraining import ClassifierConfig, EncoderClassifier
from plainformer.tokens.bpe import BytePairEncoder
from plainformer.tokens.vocabulary import Vocabulary
from plainformer.training.arrays import digest, to_json
from plainformer.training.checkpoint import save_checkpoint
from plainformer.training.saving import load_metadata, load_model, model_bytes, save_model

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


@pytest.mark.parametrize("config", [ToyConfig(), CONFIG])
def test_load_model_returns_what_save_model_wrote(tmp_path, config):
    model, path = filled(Toy, config), tmp_path / "any.name.safetensors"
    save_model(path, model)
    found = load_model(str(path), Toy)
    assert same(found, model)
    assert found.config == config
    assert json.loads((tmp_path / "any.name.json").read_text()) == dataclasses.asdict(config)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["any.name.json", "any.name.safetensors"]


@pytest.mark.parametrize(
    "sizes",
    [
        {"pattern": ("delta", "full"), "position_scheme": "rotary", "num_kv_heads": 3},
        {"window": 2, "pattern": ("full", "window"), "sinks": True, "position_scheme": "relative", "norm": "rms"},
    ],
)
def test_load_model_returns_decoders_whose_configuration_holds_tuples(tmp_path, sizes):
    stack = StackConfig(d_model=24, num_layers=2, num_heads=6, d_ff=8, **sizes)
    model = filled(Decoder, DecoderConfig(vocab_size=7, context_len=5, stack=stack, tied_embedding=False))
    save_model(tmp_path / "decoder.safetensors", model)
    found = load_model(tmp_path / "decoder.safetensors", Decoder)
    assert same(found, model)
    assert found.config == model.config


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


def test_metadata_of_ones_own_come_back_with_a_model(tmp_path):
    path, own = tmp_path / "toy.safetensors", {"classes": ["elvish", "en"], "rows": np.int64(3)}
    save_model(path, Toy(ToyConfig(5), key=jax.random.key(0)), metadata=own)
    assert load_metadata(path) == own
    save_model(path, Toy(ToyConfig(5), key=jax.random.key(0)), metadata={"rows": np.arange(3), 1: "a"})
    assert load_metadata(path) == {"rows": [0, 1, 2], "1": "a"}
    with pytest.raises(ValueError, match="Two keys are '1' as strings"):
        save_model(path, Toy(ToyConfig(5), key=jax.random.key(0)), metadata={"own": [{1: "a", "1": "b"}]})
    save_model(path, Toy(ToyConfig(5), key=jax.random.key(0)), metadata=own)
    path.write_bytes(path.read_bytes().replace(b"elvish", b"orkish"))
    with pytest.raises(ValueError, match="is damaged"):
        load_metadata(path)


def test_load_model_leaves_the_tokenizer_out_or_insists_on_it(tmp_path):
    model, path = filled(Toy, CONFIG), tmp_path / "both.safetensors"
    save_model(path, model, VOCABULARY)
    assert isinstance(load_model(path, Toy, tokenizer=False), Toy)
    assert isinstance(load_model(path, Toy, tokenizer=True)[0], Toy)
    save_model(path, model)
    assert isinstance(load_model(path, Toy), Toy)
    with pytest.raises(ValueError, match="no tokenizer"):
        load_model(path, Toy, tokenizer=True)


class Own:
    """A tokenizer with `to_json`, but of a kind that nobody reads."""

    def to_json(self):
        return '{"mine": 1}'

    def __len__(self):
        return 1


@pytest.mark.parametrize(
    ("vocab_size", "tokenizer", "message"),
    [
        (5, VOCABULARY, "tokenizer has 6 tokens"),
        (7, Own(), "mine"),
    ],
)
def test_save_model_refuses_a_tokenizer_that_could_not_be_used(tmp_path, vocab_size, tokenizer, message):
    with pytest.raises(ValueError, match=message):
        save_model(tmp_path / "toy.safetensors", filled(Toy, ToyConfig(vocab_size=vocab_size)), tokenizer)
    assert not list(tmp_path.iterdir())


def test_save_model_takes_a_tokenizer_where_the_model_has_no_vocabulary(tmp_path):
    encoder = filled(RowEncoder, EncoderConfig(context_len=3, d_in=4, stack=StackConfig(d_model=12, num_heads=3)))
    save_model(tmp_path / "encoder.safetensors", encoder, VOCABULARY)
    _, again = load_model(tmp_path / "encoder.safetensors", RowEncoder)
    assert again.to_json() == VOCABULARY.to_json()


@pytest.mark.gate
def test_load_model_notices_a_file_cut_short(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "cut.safetensors"
    for length in [0, 5, 20, 24, len(content) // 2, len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=f"^{path} is damaged"):
            load_model(path, Toy)


def test_load_model_notices_altered_bytes(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "altered.safetensors"
    model = load_model(saved, Toy)
    for place in range(0, len(content), 5):
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


def test_load_model_names_what_is_not_a_model(saved, tmp_path):
    path = tmp_path / "x.safetensors"
    with pytest.raises(FileNotFoundError, match=path.name):
        load_model(path, Toy)
    path.write_text("hello, this is no such file")
    with pytest.raises(ValueError, match="damaged"):
        load_model(path, Toy)
    save_file({"weight": np.ones(3)}, path)
    with pytest.raises(ValueError, match="no config in its header"):
        load_model(path, Toy)
    checkpoint = save_checkpoint(tmp_path, 3, {"weight": jnp.ones(3)}, {})
    with pytest.raises(ValueError, match="a checkpoint of fit"):
        load_model(checkpoint, Toy)
    with pytest.raises(ValueError, match="holds the model Toy"):
        load_model(saved, Quiet)


def written(path, config: str, **arrays):
    """A file as somebody else may write it, with the right sum."""
    save_file(arrays, path, {"model": "Toy", "config": config, "sha256": digest(arrays, config)})
    return path


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ('{"vocab_size": 7, "colour": "red"}', "colour"),
        ('{"vocab_size": 0}', "vocab_size is 0"),
        (to_json({**dataclasses.asdict(CONFIG), "first": {"width": 4}}), "PartConfig does not say num_layers"),
        ('{"first": {"colour": "red"}}', "colour"),
        (to_json({**dataclasses.asdict(CONFIG), "first": 7}), "no attribute 'num_layers'"),
        ("[]", "it holds a list"),
        ("[" * 200_000, "recursion"),
    ],
)
def test_load_model_names_a_configuration_that_no_model_has(tmp_path, config, reason):
    path = written(tmp_path / "odd.safetensors", config, embedding=np.ones(3))
    with pytest.raises(ValueError, match=rf"^{path} has a configuration that no Toy has: .*{reason}"):
        load_model(path, Toy)


def test_load_model_names_a_configuration_of_other_shapes(tmp_path):
    path = written(tmp_path / "odd.safetensors", to_json(ToyConfig()), embedding=np.ones((7, 3), np.float32))
    with pytest.raises(ValueError, match=r"layers\.0\.weight is missing"):
        load_model(path, Toy)
    config = to_json(ToyConfig(first=PartConfig(num_layers=1)))
    path = written(tmp_path / "odd.safetensors", config, embedding=np.ones((7, 3), np.int32))
    with pytest.raises(ValueError, match=r"embedding is \(7, 3\) int32"):
        load_model(path, Toy)


def test_load_model_does_not_build_layers_that_the_file_does_not_hold(tmp_path):
    path = written(tmp_path / "huge.safetensors", '{"first": {"num_layers": 1000000000}}', embedding=np.ones(3))
    with pytest.raises(ValueError, match=r"no Toy has: 1000000000 layers, but 1 tensors"):
        load_model(path, Toy)


def test_save_model_refuses_what_it_cannot_write(saved, tmp_path, monkeypatch, unchecked):
    model = filled(Toy, dataclasses.replace(CONFIG, vocab_size=8))
    with pytest.raises(ValueError, match=r"x\.bin"):
        save_model("x.bin", model)
    with pytest.raises(TypeError, match="dict has no config"):
        save_model(tmp_path / "x.safetensors", model.layers[0])
    with pytest.raises(FileNotFoundError, match="none"):
        save_model(tmp_path / "none" / "x.safetensors", model)
    assert list(tmp_path.iterdir()) == []

    path = tmp_path / "kept.safetensors"
    save_model(path, filled(Toy, CONFIG))

    def refuse(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="No space left"):
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


def test_load_model_returns_models_of_16_and_64_bits(tmp_path, x64):
    for dtype in (jnp.bfloat16, jnp.float64):
        model = jax.tree.map(lambda leaf, dtype=dtype: leaf.astype(dtype) / 3, filled(Toy, CONFIG))
        save_model(tmp_path / "toy.safetensors", model)
        assert same(load_model(tmp_path / "toy.safetensors", Toy), model)


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
    with pytest.raises(ValueError, match="not what its config describes"):
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
    else:
        other = to_json(dataclasses.replace(CONFIG, vocab_size=9), indent=2) + "\n"
        path.write_text({"no JSON": "shopping list", "configuration of another model": other}[kind])
    return path.read_bytes()


@pytest.mark.parametrize(
    ("kind", "there"), [("tokenizer", True), ("no JSON", False), ("configuration of another model", True)]
)
def test_save_model_replaces_no_json_but_the_configuration_of_the_model_that_it_replaces(tmp_path, kind, there):
    path = tmp_path / "toy.safetensors"
    if there:
        save_model(path, filled(Toy, CONFIG))
    text, before = own_json(path.with_suffix(".json"), kind), there and path.read_bytes()
    with pytest.raises(FileExistsError, match=r"toy\.json exists"):
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
    with pytest.raises(FileExistsError, match=r"toy\.json exists"):
        save_model(path, filled(Toy, CONFIG))
    assert load_model(path, Toy).config == other


def larger_vocabulary(model):
    return eqx.tree_at(lambda each: each.embedding, model, jnp.ones((9, model.embedding.shape[1])))


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


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: larger_vocabulary(filled(Toy, CONFIG)), r"embedding is \(9, 4\) float32"),
        (lambda: with_adapter(filled(Toy, CONFIG)), r"layers\.0\.weight\.0"),
        (lambda: without_output(filled(Toy, CONFIG)), "output is missing"),
        (lambda: filled(Pair, WithTuple()), r"sizes=\[1, 2\]"),
    ],
)
def test_save_model_refuses_what_load_model_would_refuse(tmp_path, model, message):
    with pytest.raises(ValueError, match=message):
        save_model(tmp_path / "toy.safetensors", model())
    assert not list(tmp_path.iterdir())


def test_two_saves_of_a_model_are_the_same_bytes_in_whichever_process(tmp_path):
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from toy_saved import *\n"
        "from plainformer.tokens.vocabulary import Vocabulary\n"
        "from plainformer.training.saving import save_model\n"
        "save_model(sys.argv[1], filled(Toy, ToyConfig(vocab_size=9)), Vocabulary('aäb, ✓'))\n"
    )
    path, model, vocabulary = tmp_path / "toy.safetensors", filled(Toy, ToyConfig(vocab_size=9)), Vocabulary("aäb, ✓")
    command = [sys.executable, "-c", script, str(path), *sys.path]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "1"})
    content = path.read_bytes()
    assert {model_bytes(model, vocabulary) for _ in range(8)} == {content}
    with safe_open(path, "numpy") as file:  # as other programs read it
        assert sorted(file.keys()) == ["embedding", "layers.0.weight", "layers.1.weight"]
        assert sorted(file.metadata()) == ["config", "model", "sha256", "tokenizer"]
    assert int.from_bytes(content[:8], "little") % 8 == 0  # so that numbers lie where a program may map them
    found, again = load_model(path, Toy)
    assert same(found, model)
    assert again.decode(again.encode("✓ä")) == "✓ä"


def test_a_file_that_an_older_version_wrote_is_read(tmp_path):
    """With the header in whichever order, and compact or not, as safetensors itself writes it."""
    model, path = filled(Toy, CONFIG), tmp_path / "toy.safetensors"
    save_model(path, model)
    with safe_open(path, "numpy") as file:
        save_file(load_file(path), tmp_path / "old.safetensors", file.metadata())
    assert same(load_model(tmp_path / "old.safetensors", Toy), model)


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
        with pytest.raises(ValueError, match="is not what its config describes"):
            save_model(tmp_path / "other.safetensors", changed)
        assert not (tmp_path / "other.safetensors").exists()
