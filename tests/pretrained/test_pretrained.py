"""Models in Hugging Face's form: written and opened again, and everything that is not one, refused by name."""

import json
import pickle
import re
import sys
import zipfile
from collections import OrderedDict

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import plainformer as pf
from plainformer.pretrained.names import Interleaved
from plainformer.pretrained.torch_files import Storage, View, _tensor

KEY = jax.random.key(0)
SIZES = {"d_model": 12, "num_layers": 2, "num_heads": 3, "d_ff": 10}
MODERN = {"norm": "rms", "activation": "swiglu", "position_scheme": "rotary", "use_bias": False}
SCALING = pf.positions.RotaryScaling(factor=8.0, trained_len=16)
YARN = pf.positions.YarnScaling(factor=4.0, fast_turns=2.0, trained_len=8, truncate=False)
IDS = jnp.asarray([3, 1, 4, 1, 5, 9, 2])


def decoder(tied=True, **fields):
    return pf.Decoder(pf.DecoderConfig(17, 16, pf.StackConfig(**SIZES | fields), tied), key=KEY)


def redrawn(model, seed=0):
    """Every number drawn: zeros and ones would hide a slip."""
    arrays, rest = eqx.partition(model, eqx.is_inexact_array)
    draw = np.random.default_rng(seed)
    return eqx.combine(jax.tree.map(lambda a: jnp.asarray(0.3 * draw.normal(size=a.shape), a.dtype), arrays), rest)


def encoder_config(**fields):
    stack = pf.StackConfig(**SIZES, norm_placement="post", norm_eps=1e-12)
    return pf.EncoderConfig(context_len=16, vocab_size=17, stack=stack, embedding_norm=True, **fields)


WRITTEN = {
    "gpt2": decoder(activation="gelu_tanh", norm_eps=1e-3),
    "gptj": pf.Decoder(
        pf.DecoderConfig(
            17,
            16,
            pf.StackConfig(**SIZES, parallel=True, position_scheme="rotary", rotary_fraction=0.5),
            tied_embedding=False,
            output_bias=True,
        ),
        key=KEY,
    ),
    "llama": decoder(False, **MODERN, num_kv_heads=1, rope_theta=50.0, rope_scaling=SCALING),
    "mistral": decoder(**MODERN, window=3, d_k=6, d_v=6, rope_scaling=pf.positions.LinearScaling(factor=2.0)),
    "qwen2": decoder(**MODERN | {"use_bias": True}, rope_scaling=YARN),
    "qwen3": decoder(**MODERN, qk_norm=True),
    "bert": pf.MaskedLanguageModel(encoder_config(num_segments=2), key=KEY),
    "roberta": pf.Encoder(encoder_config(num_segments=1), key=KEY),
    "distilbert": pf.MaskedLanguageModel(encoder_config(), key=KEY),
    "albert": pf.MaskedLanguageModel(encoder_config(num_segments=2, embedding_width=8), key=KEY),
    "vit": pf.ViT(
        pf.ViTConfig(image_size=(8, 12), patch_size=4, channels=3, num_classes=5, stack=pf.StackConfig(**SIZES)),
        key=KEY,
    ),
    "marian": pf.Seq2Seq(
        pf.Seq2SeqConfig(
            *(17, 16, 16, 16, 0, 17),  # start_token=16, stop_token=0
            encoder=pf.StackConfig(**SIZES | {"num_layers": 1}, norm_placement="post", activation="silu"),
            decoder=pf.StackConfig(**SIZES, norm_placement="post", activation="silu"),
            tied_embedding=False,
            output_bias=True,
        ),
        key=KEY,
    ),
}
# What these families can hold: biases that are always zero, one norm for two, one block for all, one table for three
# and positions that are sines in the first half of the columns and cosines in the second.
ZEROS = {"gptj": ("attention.query.bias", "attention.key.bias", "attention.value.bias", "attention.output.bias")}
ZEROS["qwen2"] = ("attention.output.bias",)


def possible(model_type, model):
    """A model with numbers drawn, as far as the family lets them be any."""
    arrays = pf.training.named_arrays(redrawn(model))
    for name in arrays:
        if name.endswith(ZEROS.get(model_type, ("none",))):
            arrays[name] = jnp.zeros_like(arrays[name])
        if model_type == "gptj" and ".feed_forward_norm." in name:
            arrays[name] = arrays[name.replace("feed_forward", "attention")]
        if model_type == "albert" and "blocks.1." in name:
            arrays[name] = arrays[name.replace("blocks.1.", "blocks.0.")]
        if model_type == "marian" and name.endswith("embedding.weight"):
            arrays[name] = arrays["output.weight"].T * 12**0.5
        if model_type == "marian" and name.endswith("scheme.table"):
            angles = np.arange(16)[:, None] / 10_000.0 ** (np.arange(6) / 6)
            arrays[name] = jnp.asarray(np.concatenate([np.sin(angles), np.cos(angles)], axis=1), jnp.float32)
    return pf.training.with_arrays(model, arrays)


@pytest.mark.parametrize("model_type", WRITTEN)
def test_what_is_written_opens_as_it_was(model_type, tmp_path):
    model = possible(model_type, WRITTEN[model_type])
    pf.to_hugging_face(tmp_path / "new", model, model_type)
    again, tokenizer = pf.open_model(tmp_path / "new")
    assert tokenizer is None
    assert type(again) is type(model)
    found, expected = (pf.training.named_arrays(each) for each in (again, model))
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.fixture
def folder(tmp_path):
    """A GPT-2."""
    pf.to_hugging_face(tmp_path, redrawn(decoder()), "gpt2")
    return tmp_path


def change(folder, **fields):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def refused(folder, kind=ValueError):
    """What is said of a folder that cannot be opened."""
    with pytest.raises(kind) as caught:
        pf.open_model(folder)
    return str(caught.value)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"model_type": "t5"}, "says model_type 't5'"),
        ({"architectures": ["GPT2ForTokenClassification"]}, "it is a GPT2ForTokenClassification"),
        ({"activation_function": "mish"}, "activation_function is 'mish'"),
        ({"scale_attn_weights": False}, "scale_attn_weights is False"),
        ({"n_head": 5}, "d_model=12 is not a multiple of num_heads=5"),
        ({"n_layer": 3}, "It lacks transformer.h.2.attn.c_attn.bias"),
        ({"n_layer": 10**9}, "says n_layer=1,000,000,000; expected at most 1,000"),
        ({"n_layer": 1}, "It has transformer.h.1.attn.c_attn.bias"),
        ({"n_inner": 11}, r"transformer.h.0.mlp.c_fc.weight has shape"),
    ],
)
def test_configurations_that_do_not_fit_are_named(folder, fields, said):
    change(folder, **fields)
    assert re.search(said, refused(folder)), refused(folder)


@pytest.mark.parametrize(
    ("model_type", "fields"),
    [
        ("bert", {"tie_word_embeddings": True, "is_decoder": False}),
        ("llama", {"mlp_bias": False}),
        ("marian", {"tie_word_embeddings": True, "normalize_before": False, "add_final_layer_norm": False}),
        ("vit", {"qkv_bias": True}),
    ],
)
def test_fields_that_are_the_same_in_the_whole_family_open_and_their_contrary_does_not(model_type, fields, tmp_path):
    pf.to_hugging_face(tmp_path, possible(model_type, WRITTEN[model_type]), model_type)
    change(tmp_path, **fields)
    pf.open_model(tmp_path)
    for name, value in fields.items():
        change(tmp_path, **fields | {name: not value})
        assert f"{name} is {not value}; expected {value}, and nothing else" in refused(tmp_path)


def test_heads_of_a_llama_that_says_no_width_share_that_of_the_model(tmp_path):
    pf.to_hugging_face(tmp_path, WRITTEN["llama"], "llama")
    config = json.loads((tmp_path / "config.json").read_text())
    assert config.pop("head_dim") == 4
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert pf.open_model(tmp_path)[0].config.stack.key_width == 4


def test_fields_that_are_missing_are_named(folder):
    path = folder / "config.json"
    path.write_text(json.dumps({"model_type": "gpt2", "vocab_size": 17, "n_positions": 16, "n_embd": 12}))
    assert "has no 'n_layer'; expected one, as of a gpt2" in refused(folder)
    path.write_text("{")
    assert "is not valid JSON" in refused(folder)
    path.unlink()
    assert "There is no file" in refused(folder, FileNotFoundError)


def rewrite(folder, change):
    """Change the tensors in a file."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def test_tensors_that_do_not_fit_are_named(folder):
    name = "transformer.h.0.ln_1.weight"
    rewrite(folder, lambda tensors: tensors.update({"transformer.h.0.ln_1.more": tensors.pop(name)}))
    assert f"It lacks {name}." in refused(folder)
    rewrite(folder, lambda tensors: tensors.update({name: np.ones(12, np.int32)}))
    assert "It has transformer.h.0.ln_1.more, and the model no place" in refused(folder)
    rewrite(folder, lambda tensors: tensors.pop("transformer.h.0.ln_1.more"))
    assert f"{name} holds int32; expected floats" in refused(folder)


def test_names_of_old_files_are_known(tmp_path):
    """The first files of BERT call scale and bias of a norm gamma and beta; those of GPT-2 begin at the blocks."""
    ends = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}

    def older(name):
        for new, old in ends.items():
            name = name.removesuffix(new) + old if name.endswith(new) else name
        return name.removeprefix("transformer.")

    for model_type, of in {"bert": WRITTEN["bert"], "gpt2": WRITTEN["gpt2"]}.items():
        model = redrawn(of)
        pf.to_hugging_face(tmp_path, model, model_type)
        path = tmp_path / "model.safetensors"
        save_file({older(name): tensor for name, tensor in load_file(path).items()}, path)
        again, _ = pf.open_model(tmp_path)
        for name, array in pf.training.named_arrays(model).items():
            np.testing.assert_array_equal(pf.training.named_arrays(again)[name], array, err_msg=name)


def test_tied_tensors_must_be_equal(folder):
    rewrite(folder, lambda tensors: tensors.update({"lm_head.weight": tensors["transformer.wte.weight"].copy()}))
    pf.open_model(folder)
    rewrite(folder, lambda tensors: tensors["lm_head.weight"].__setitem__(0, 1.0))
    assert "lm_head.weight differs from transformer.wte.weight" in refused(folder)


def test_files_that_are_damaged_or_missing_are_named(folder, tmp_path):
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "model.safetensors is damaged, or no safetensors file" in refused(folder)
    path.unlink()
    assert "has no weights; expected model.safetensors" in refused(folder, FileNotFoundError)
    index = folder / "model.safetensors.index.json"
    index.write_text("{}")
    assert "has no weight_map" in refused(folder)
    index.write_text(json.dumps({"weight_map": {"a": "../a.safetensors"}}))
    assert "names the file '../a.safetensors'; expected one in the same folder" in refused(folder)
    index.write_text(json.dumps({"weight_map": {"a": "one.safetensors"}}))
    assert "There is no file" in refused(folder, FileNotFoundError)
    (folder / "one.safetensors").write_bytes(whole)
    assert "do not hold what it says, such as" in refused(folder)
    with pytest.raises(NotADirectoryError, match=r"is a file"):
        pf.open_model(index)
    with pytest.raises(FileNotFoundError, match=r"There is no folder"):
        pf.open_model(tmp_path / "nowhere")


def test_a_name_of_one_or_two_parts_is_one_of_the_hub_and_a_longer_one_a_path(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for name in ("gpt-none", "nobody/gpt-none"):
        with pytest.raises(FileNotFoundError, match=r"a model on the hub\. .*pip install huggingface_hub$"):
            pf.open_model(name)
    with pytest.raises(FileNotFoundError, match=r"^There is no folder .*; expected .*model\.safetensors\.$"):
        pf.open_model("models/nobody/gpt-none")


class Pickled:
    """Something that a pickle calls when it is opened."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


def torch_zip(path, content):
    """A file of PyTorch with this pickle in it."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(content))


@pytest.mark.parametrize("pack", [torch_zip, lambda path, content: path.write_bytes(pickle.dumps(content))])
def test_pickle_that_would_do_something_is_refused_and_does_nothing(folder, pack):
    (folder / "model.safetensors").unlink()
    done = folder / "done"
    pack(folder / "pytorch_model.bin", OrderedDict(a=Pickled(exec, f"open({str(done)!r}, 'w').close()")))
    said = refused(folder)
    assert "it wants to call builtins.exec; expected nothing but an OrderedDict, a tensor or its storage" in said
    assert not done.exists()


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps({"a": 1}), b"\x80\x02}r\xff\xff\xff\x7f."])
def test_files_that_are_none_of_torch_are_refused(folder, content):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(content)
    assert "pytorch_model.bin cannot be read as a dictionary of tensors" in refused(folder)


def test_a_tensor_of_more_numbers_than_are_stored_is_refused():
    view = View(Storage("0", np.dtype(np.float32), 1), 0, (3 * 10**9,), (0,))
    with pytest.raises(ValueError, match="has 1 numbers, and a tensor shows some of them again"):
        _tensor(view, {"0": bytes(4)})
    view = View(Storage("0", np.dtype(np.float32), 11), 1, (3, 4), (4, 1))  # the last is at 1 + 2 * 4 + 3
    with pytest.raises(ValueError, match="storage 0 has 11 numbers, and a tensor needs 13"):
        _tensor(view, {"0": bytes(44)})


def test_numbers_and_names_that_are_none_are_refused(folder):
    rewrite(folder, lambda tensors: tensors["transformer.wte.weight"].__setitem__((0, 0), np.nan))
    assert "transformer.wte.weight holds numbers that are not finite" in refused(folder)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text('{"eos_token": 5}')
    assert "tokenizer_config.json has eos_token=5; expected a string" in refused(folder)


@pytest.mark.parametrize(
    ("model_type", "model", "said"),
    [
        ("gpt3", decoder(), r"model_type is 'gpt3'"),
        ("bert", decoder(), r"The model is a Decoder"),
        ("gpt2", decoder(**MODERN), r"A gpt2 cannot have stack.norm='rms' \(but"),
        ("qwen2", redrawn(decoder(**MODERN | {"use_bias": True})), r"attention.output.bias"),
        ("albert", redrawn(WRITTEN["albert"]), r"stack.blocks.0"),
        ("gptj", redrawn(WRITTEN["gptj"]), r"This Decoder is no gptj"),
    ],
)
def test_models_that_a_family_has_not_are_refused_and_nothing_is_written(model_type, model, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        pf.to_hugging_face(tmp_path / "new", model, model_type)
    assert not (tmp_path / "new").exists()


def test_dropout_and_the_way_attention_is_computed_do_not_matter(tmp_path):
    model = decoder(dropout_rate=0.1, attention="blockwise")
    pf.to_hugging_face(tmp_path, model, "gpt2")
    np.testing.assert_allclose(pf.open_model(tmp_path)[0](IDS), model(IDS), atol=1e-6)


def test_one_of_the_two_numbers_of_deepseek_alone_sharpens_nothing(tmp_path):
    pf.to_hugging_face(tmp_path, possible("qwen2", WRITTEN["qwen2"]), "qwen2")
    config = json.loads((tmp_path / "config.json").read_text())
    config["rope_scaling"] |= {"mscale": 0.7, "attention_factor": None}
    (tmp_path / "config.json").write_text(json.dumps(config))
    model, _ = pf.open_model(tmp_path)
    assert model.config.stack.rope_scaling == YARN


def test_compressed_archive_is_refused(folder):
    (folder / "model.safetensors").unlink()
    with zipfile.ZipFile(folder / "pytorch_model.bin", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(OrderedDict()))
    assert "its parts are compressed" in refused(folder)


def test_neighbouring_pairs_become_columns_half_a_head_apart():
    form = Interleaved(width=6, num_turned=4)
    tensor = jnp.arange(24.0).reshape(12, 2)  # two heads of six rows: PyTorch's matrices stand the other way
    (found,) = form.read(tensor, [(2, 12)])
    assert found[0].tolist() == [0, 4, 2, 6, 8, 10, 12, 16, 14, 18, 20, 22]
    np.testing.assert_array_equal(form.write([found]), tensor)


@pytest.mark.equation("eq-pretrained-turned")
def test_matrices_in_a_file_have_outputs_in_rows(tmp_path):
    model = possible("albert", WRITTEN["albert"])
    pf.to_hugging_face(tmp_path, model, "albert")
    stored = load_file(tmp_path / "model.safetensors")["predictions.dense.weight"]
    x = np.random.default_rng(1).normal(size=(5, 12))
    np.testing.assert_allclose(model.head(jnp.asarray(x, jnp.float32)), x @ stored.T + model.head.bias, rtol=1e-4)


def test_a_file_of_a_vit_has_batches_of_one_and_channels_first(tmp_path):
    pf.to_hugging_face(tmp_path, WRITTEN["vit"], "vit")
    stored = load_file(tmp_path / "model.safetensors")
    names = ["cls_token", "position_embeddings", "patch_embeddings.projection.weight"]
    shapes = [stored[f"vit.embeddings.{name}"].shape for name in names]
    assert shapes == [(1, 1, 12), (1, 7, 12), (12, 3, 4, 4)]


@pytest.mark.equation("eq-pretrained-narrow")
def test_narrow_tables_are_normalised_before_they_are_widened():
    model = redrawn(WRITTEN["albert"])
    encoder, segments = model.encoder, jnp.asarray([0, 0, 1, 0, 1, 1, 0])
    tables = [np.asarray(each, np.float64) for each in (encoder.embedding.weight, encoder.stack.scheme.table)]
    narrow = tables[0][IDS] + tables[1][: len(IDS)] + np.asarray(encoder.segment_embedding.weight)[segments]
    centred = narrow - narrow.mean(axis=1, keepdims=True)
    normalised = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + encoder.embedding_norm.eps)
    normalised = normalised * np.asarray(encoder.embedding_norm.scale) + np.asarray(encoder.embedding_norm.bias)
    expected = normalised @ np.asarray(encoder.embedding_map.weight) + np.asarray(encoder.embedding_map.bias)
    np.testing.assert_allclose(encoder.embed(IDS, segments=segments), expected, rtol=1e-3, atol=1e-5)
