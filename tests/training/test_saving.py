"""Weights as safetensors files: bit-identical there and back, and named when they are damaged."""

import dataclasses
import json
import os

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import postponed
import pytest
from safetensors.numpy import load_file, save_file

from plainformer.models.decoder import Decoder, DecoderConfig
from plainformer.models.encoder import Encoder
from plainformer.models.pretraining import ClassifierConfig, EncoderClassifier
from plainformer.training.saving import load_model, save_model

CONFIG = DecoderConfig(vocab_size=7, context_len=5, d_model=12, num_layers=2, num_heads=6, num_kv_heads=3, d_ff=8)


def model_of(config: DecoderConfig, seed: int = 0) -> Decoder:
    """A decoder filled with any numbers, which is quicker than to draw each matrix as it should be."""
    shapes = eqx.filter_eval_shape(lambda: Decoder(config, key=jax.random.key(0)))
    numbers = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.asarray(numbers.normal(size=leaf.shape), leaf.dtype), shapes)


def same(one, other) -> bool:
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        a.dtype == b.dtype and a.shape == b.shape and (a == b).all()
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file, and the model in it; never written to."""
    path = tmp_path_factory.mktemp("weights") / "decoder.safetensors"
    save_model(path, model_of(CONFIG))
    return path


@pytest.mark.parametrize(
    "other",
    [
        *({"positions": scheme} for scheme in ("learned", "sinusoidal", "rotary", "relative", "alibi", "none")),
        {"tied_embedding": False, "use_bias": False},
        {"placement": "post", "num_kv_heads": None},
        {"norm": "rms", "activation": "swiglu", "dropout_rate": 0.1},
    ],
)
def test_load_model_gives_back_what_save_model_wrote(tmp_path, other):
    model = model_of(dataclasses.replace(CONFIG, **{"d_model": 24, **other}))
    path = tmp_path / "any.name.safetensors"
    save_model(path, model)
    found = load_model(str(path), Decoder)
    assert same(found, model)
    assert found.config == model.config
    assert json.loads((tmp_path / "any.name.json").read_text()) == dataclasses.asdict(model.config)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["any.name.json", "any.name.safetensors"]


def test_loaded_model_computes_the_same(saved):
    tokens = jnp.array([1, 6, 2])
    assert (load_model(saved, Decoder)(tokens) == model_of(CONFIG)(tokens)).all()


def test_save_model_names_tensors_by_their_place(saved):
    tensors, model = load_file(saved), model_of(CONFIG)
    assert len(tensors) == len(jax.tree.leaves(model))
    assert (tensors["blocks.0.attention.query_weight"] == model.blocks[0].attention.query_weight).all()
    assert (tensors["blocks.1.feed_forward.out_bias"] == model.blocks[1].feed_forward.out_bias).all()
    assert (tensors["embedding.weight"] == model.embedding.weight).all()
    assert {"positions.table", "final_norm.scale"} <= set(tensors)
    assert "output_weight" not in tensors  # tied


def test_save_model_takes_numpys_numbers_in_the_configuration(tmp_path, unchecked):
    path = tmp_path / "x.safetensors"
    save_model(path, model_of(dataclasses.replace(CONFIG, vocab_size=np.int64(7))))
    assert load_model(path, Decoder).config == CONFIG


def test_load_model_notices_a_file_cut_short(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "cut.safetensors"
    for length in [*range(0, 24, 5), *np.linspace(24, len(content) - 1, 40).astype(int).tolist()]:
        path.write_bytes(content[:length])
        with pytest.raises(
            ValueError,
            match=rf"^{path} is damaged, or no safetensors file: .*cut short, or a web page\? Get it again\.$",
        ):
            load_model(path, Decoder)


def test_load_model_notices_every_altered_byte(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "altered.safetensors"
    header = 8 + int.from_bytes(content[:8], "little")
    model = load_model(saved, Decoder)
    # Every third byte of the header, and some of the numbers, each with one bit turned.
    for place in [*range(0, header, 3), *np.linspace(header, len(content) - 1, 30).astype(int).tolist()]:
        altered = bytearray(content)
        altered[place] ^= 1 << place % 7
        path.write_bytes(altered)
        try:
            found = load_model(path, Decoder)
        except ValueError as error:
            said = str(error)
        else:  # such as white space at the end of the header, where it may be anything
            said = str(path) if same(found, model) else "a changed model, silently"
        assert said.startswith(str(path)), f"byte {place}: {said}"


def test_load_model_notices_an_altered_configuration(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "altered.safetensors"
    # The same shapes fit both: without a check, this would be another model.
    assert content.count(rb"\"num_heads\": 6") == 1
    path.write_bytes(content.replace(rb"\"num_heads\": 6", rb"\"num_heads\": 3"))
    with pytest.raises(ValueError, match=r"altered.safetensors is damaged: its numbers or its configuration are not"):
        load_model(path, Decoder)


def test_load_model_names_what_is_no_model(saved, tmp_path):
    path = tmp_path / "x.safetensors"
    with pytest.raises(FileNotFoundError, match=rf"^There is no file {path}. Looked in {tmp_path}"):
        load_model(path, Decoder)
    path.write_text("hello, this is no such file")
    with pytest.raises(ValueError, match=r"x.safetensors is damaged, or no safetensors file"):
        load_model(path, Decoder)
    save_file({"weight": np.ones(3)}, path)
    with pytest.raises(
        ValueError, match=r"x.safetensors has no configuration in its header; expected a file that save_m"
    ):
        load_model(path, Decoder)
    with pytest.raises(ValueError, match=r"^path is 'x.bin'; expected one that ends in .safetensors"):
        load_model("x.bin", Decoder)

    class Encoder(Decoder):
        pass

    with pytest.raises(ValueError, match=r"decoder.safetensors holds a Decoder; expected a Encoder"):
        load_model(saved, Encoder)


def test_load_model_names_a_configuration_that_does_not_fit(tmp_path, unchecked):
    @dataclasses.dataclass(frozen=True)
    class Odd:
        vocab_size: int
        colour: str = "red"

    def write(config):
        path = tmp_path / "odd.safetensors"
        odd = model_of(CONFIG)
        object.__setattr__(odd, "config", config)
        with pytest.MonkeyPatch.context() as patch:  # save_model would refuse such a model
            patch.setattr("plainformer.training.saving._skeleton", lambda model_class, config: odd)
            save_model(path, odd)
        return path

    with pytest.raises(ValueError, match=r"has a configuration that no Decoder has: .*colour"):
        load_model(write(Odd(7)), Decoder)
    with pytest.raises(
        ValueError, match=r"does not fit its own configuration: .*is \(7, 12\) float32, expected \(8, 12\)"
    ):
        load_model(write(dataclasses.replace(CONFIG, vocab_size=8)), Decoder)


def test_save_model_refuses_what_it_cannot_write(saved, tmp_path, monkeypatch):
    model = model_of(CONFIG, seed=1)
    with pytest.raises(ValueError, match=r"^path is 'x.bin'; expected one that ends in .safetensors"):
        save_model("x.bin", model)
    with pytest.raises(TypeError, match=r"^LayerNorm has no config; expected a model made from one, such as a Decoder"):
        save_model(tmp_path / "x.safetensors", model.final_norm)
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*none to put x.json in"):
        save_model(tmp_path / "none" / "x.safetensors", model)
    assert list(tmp_path.iterdir()) == []

    path = tmp_path / "kept.safetensors"
    path.write_bytes(saved.read_bytes())

    real = os.replace
    for refused in (".json", ".safetensors"):

        def refuse(part, target, refused=refused):
            if str(target).endswith(refused):
                raise OSError(28, os.strerror(28))
            real(part, target)

        monkeypatch.setattr(os, "replace", refuse)
        with pytest.raises(OSError, match=rf"^cannot write .*kept{refused}: No space left on device"):
            save_model(path, model)
        assert same(load_model(path, Decoder), model_of(CONFIG))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["kept.json", "kept.safetensors"]


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_load_model_gives_back_a_model_of_16_bits(tmp_path, dtype):
    model = jax.tree.map(lambda leaf: leaf.astype(dtype), model_of(CONFIG))
    save_model(tmp_path / "half.safetensors", model)
    found = load_model(tmp_path / "half.safetensors", Decoder)
    assert same(found, model)
    assert found(jnp.array([1, 6])).dtype == dtype


def test_load_model_gives_back_32_bits_where_64_are_the_default(saved, x64):
    found = load_model(saved, Decoder)
    assert {leaf.dtype for leaf in jax.tree.leaves(found)} == {jnp.dtype("float32")}
    assert (found.embedding.weight == load_file(saved)["embedding.weight"]).all()


def test_load_model_gives_back_a_model_of_64_bits(tmp_path, x64):
    model = jax.tree.map(lambda leaf: leaf.astype(jnp.float64) / 3, model_of(CONFIG))
    save_model(tmp_path / "double.safetensors", model)
    assert same(load_model(tmp_path / "double.safetensors", Decoder), model)


class Quiet(Decoder):
    """A decoder by another name, without annotations of its own."""


def test_load_model_finds_the_configuration_of_a_subclass(tmp_path):
    model = model_of(CONFIG)
    quiet = eqx.filter_eval_shape(lambda: Quiet(CONFIG, key=jax.random.key(0)))
    quiet = jax.tree.unflatten(jax.tree.structure(quiet), jax.tree.leaves(model))
    save_model(tmp_path / "quiet.safetensors", quiet)
    found = load_model(tmp_path / "quiet.safetensors", Quiet)
    assert type(found) is Quiet
    assert same(found, quiet)


def test_load_model_reads_annotations_that_are_strings(tmp_path):
    model = postponed.Scale(postponed.ScaleConfig(size=3), key=jax.random.key(0))
    save_model(tmp_path / "scale.safetensors", model)
    assert same(load_model(tmp_path / "scale.safetensors", postponed.Scale), model)


def test_save_model_refuses_parts_that_the_configuration_does_not_describe(tmp_path, key):
    sizes = {"vocab_size": 7, "context_len": 5, "d_model": 12, "num_layers": 1, "num_classes": 3}
    four, three = (EncoderClassifier(ClassifierConfig(**sizes, num_heads=n), key=key) for n in (4, 3))
    mixed = eqx.tree_at(lambda model: model.encoder, four, three.encoder)
    with pytest.raises(ValueError, match=r"not what its config describes, so load_model would build another one"):
        save_model(tmp_path / "mixed.safetensors", mixed)
    assert not list(tmp_path.iterdir())
    same = eqx.tree_at(lambda model: model.encoder, four, Encoder(four.encoder.config, key=key))
    save_model(tmp_path / "same.safetensors", same)
    assert load_model(tmp_path / "same.safetensors", EncoderClassifier).encoder.config.num_heads == 4
