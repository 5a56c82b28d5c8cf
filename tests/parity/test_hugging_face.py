"""Models of Hugging Face opened as ours: odd ones of every family, with the same numbers; and written back."""

from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from closeness import assert_close
from torch_parameters import CLOSE, redrawn

import plainformer as pf

SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20, "vocab_size": 17}
NONE = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
LLAMA = SIZES | NONE | {"max_position_embeddings": 23, "num_key_value_heads": 1}
GPT2 = NONE | {"n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 23, "vocab_size": 17}
BERT = SIZES | {"max_position_embeddings": 23, "pad_token_id": 0}
ROTARY = {"rope_type": "default", "rope_theta": 50.0}
SCALED = {
    "rope_type": "llama3",
    "rope_theta": 50.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}


def each(base, *changes):
    """The base alone, and with each of the changes."""
    return [base, *(base | change for change in changes)]


DECODERS = {
    transformers.GPT2LMHeadModel: each(
        GPT2,
        {"n_inner": 10},
        {"layer_norm_epsilon": 1e-2},
        {"activation_function": "gelu"},
        {"activation_function": "relu"},
        {"tie_word_embeddings": False},
    ),
    transformers.GPTJForCausalLM: each(
        GPT2 | {"rotary_dim": 4},
        {"rotary_dim": 8},
        {"n_inner": 10},
        {"layer_norm_epsilon": 1e-2},
        {"activation_function": "relu"},
    ),
    transformers.LlamaForCausalLM: each(
        LLAMA,
        {"rope_parameters": ROTARY},
        {"rope_parameters": SCALED},
        {"num_key_value_heads": 3, "rms_norm_eps": 1e-2},
        {"head_dim": 10},
        {"attention_bias": True},
        {"hidden_act": "gelu"},
        {"hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": True},
    ),
    transformers.MistralForCausalLM: each(
        LLAMA | {"sliding_window": 3}, {"sliding_window": None}, {"head_dim": 6}, {"tie_word_embeddings": True}
    ),
    transformers.Qwen2ForCausalLM: each(
        LLAMA,
        {"rms_norm_eps": 1e-2},
        {"rope_parameters": ROTARY},
        {"tie_word_embeddings": True},
        {"hidden_act": "gelu"},
    ),
    transformers.Qwen3ForCausalLM: each(
        LLAMA | {"head_dim": 8},
        {"head_dim": 10},
        {"rms_norm_eps": 1e-2},
        {"tie_word_embeddings": True},
        {"attention_bias": True},
    ),
}
BERTS = [
    {"hidden_act": "gelu_new"},
    {"hidden_act": "relu", "vocab_size": 31},
    {"layer_norm_eps": 1e-2},
    {"type_vocab_size": 1},
]
DISTILBERT = {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 20, "vocab_size": 17, "max_position_embeddings": 23}
ROBERTA = BERT | {"pad_token_id": 1, "max_position_embeddings": 25}
ENCODERS = {
    transformers.BertForMaskedLM: each(BERT, *BERTS),
    transformers.RobertaForMaskedLM: each(
        ROBERTA | {"type_vocab_size": 1},
        *({"layer_norm_eps": 1e-5, "type_vocab_size": 1} | one for one in BERTS if "hidden_act" not in one),
        {"type_vocab_size": 2},
    ),
    transformers.DistilBertForMaskedLM: each(
        DISTILBERT, {"hidden_dim": 50}, {"activation": "relu"}, {"sinusoidal_pos_embds": True}
    ),
    transformers.AlbertForMaskedLM: each(BERT | {"embedding_size": 8}, *BERTS, {"embedding_size": 40}),
    transformers.BertModel: each(BERT, {"hidden_act": "gelu_new"}),
    transformers.RobertaModel: each(ROBERTA),
    transformers.DistilBertModel: each(DISTILBERT),
    transformers.AlbertModel: each(BERT | {"embedding_size": 8}),
    transformers.BertForSequenceClassification: each(BERT, {"num_labels": 5}),
    transformers.RobertaForSequenceClassification: each(ROBERTA, {"num_labels": 5}),
    transformers.AlbertForSequenceClassification: each(BERT | {"embedding_size": 8}, {"num_labels": 5}),
}
VIT = {name: size for name, size in SIZES.items() if name != "vocab_size"} | {"image_size": 8, "patch_size": 4}
IMAGES = {
    transformers.ViTForImageClassification: each(
        VIT,
        {"num_labels": 5},
        {"num_channels": 1},
        {"image_size": (8, 12)},
        {"layer_norm_eps": 1e-2},
        {"hidden_act": "relu"},
    )
}
MARIAN = {
    "vocab_size": 17,
    "d_model": 24,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 23,
    "pad_token_id": 16,
    "decoder_start_token_id": 16,
    "eos_token_id": 0,
    "forced_eos_token_id": None,
}
TRANSLATORS = {
    transformers.MarianMTModel: each(
        MARIAN,
        {"scale_embedding": True},
        {"activation_function": "swish"},
        {"encoder_layers": 3, "scale_embedding": True},
        {"decoder_start_token_id": 3, "pad_token_id": 3},
    )
}


def cases(families):
    """One parameter for each configuration."""
    return [
        pytest.param(model, fields, id=f"{model.__name__}-{number}")
        for model, configurations in families.items()
        for number, fields in enumerate(configurations)
    ]


def both(model, fields, folder, **options):
    """Theirs, drawn anew and saved, and what we open of it."""
    theirs = redrawn(model(model.config_class(**fields, attn_implementation="eager")))
    for name, buffer in theirs.named_buffers():
        if name == "final_logits_bias":
            draw = np.random.default_rng(2)
            buffer.copy_(torch.tensor(draw.normal(size=tuple(buffer.shape)), dtype=torch.float32))
    theirs.save_pretrained(folder, **options)
    return theirs, pf.open_model(folder)[0]


def written_back(ours, theirs, folder):
    """Theirs again, of what we write."""
    pf.to_hugging_face(folder, ours, theirs.config.model_type)
    return type(theirs).from_pretrained(folder, attn_implementation="eager").eval()


def texts(fields, length=12):
    return np.random.default_rng(length).integers(3, fields["vocab_size"], size=(3, length))


def close(found, expected):
    """Both are equal to 1e-5, and are no zeros."""
    expected = expected.detach().numpy()
    assert np.abs(expected).max() > 0.3
    assert_close(found, expected)


@pytest.mark.parametrize(("model", "fields"), cases(DECODERS))
def test_decoder_opens(model, fields, tmp_path):
    theirs, ours = both(model, fields, tmp_path)
    tokens = texts(fields)
    close(ours(jnp.asarray(tokens)), theirs(torch.tensor(tokens)).logits)
    prompts = torch.tensor(tokens[:, :4])
    options = {"attention_mask": torch.ones_like(prompts), "max_new_tokens": 9, "do_sample": False, "pad_token_id": 0}
    found = pf.generate(ours, tokens[:, :4].tolist(), 9, temperature=0.0)
    assert [each.tokens for each in found] == theirs.generate(prompts, **options)[:, 4:].tolist()
    again = written_back(ours, theirs, tmp_path / "again")
    close(ours(jnp.asarray(tokens)), again(torch.tensor(tokens)).logits)


@pytest.mark.parametrize(("model", "fields"), cases(ENCODERS))
def test_encoder_opens(model, fields, tmp_path):
    theirs, ours = both(model, fields, tmp_path)
    tokens, is_token = texts(fields), np.arange(12) < np.array([12, 5, 1])[:, None]
    tokens[~is_token] = theirs.config.pad_token_id
    inputs = {"input_ids": torch.tensor(tokens), "attention_mask": torch.tensor(is_token.astype(int))}
    segments = None
    if (num := getattr(theirs.config, "type_vocab_size", 0)) > 1:
        segments = np.random.default_rng(3).integers(num, size=tokens.shape)
        inputs["token_type_ids"] = torch.tensor(segments)
        segments = jnp.asarray(segments)

    def rows(output):
        return getattr(output, "logits", None) if hasattr(output, "logits") else output.last_hidden_state

    found, again = (
        ours(jnp.asarray(tokens), jnp.asarray(is_token), segments),
        written_back(ours, theirs, tmp_path / "x"),
    )
    for other in (theirs, again):
        expected = rows(other(**inputs))
        of_tokens = expected.ndim == 3
        close(found[is_token] if of_tokens else found, expected[torch.tensor(is_token)] if of_tokens else expected)


@pytest.mark.parametrize(("model", "fields"), cases(IMAGES))
def test_vit_opens(model, fields, tmp_path):
    theirs, ours = both(model, fields, tmp_path)
    height, width = ours.config.image_size
    pixels = np.random.default_rng(4).uniform(size=(3, height, width, ours.config.channels)).astype(np.float32)
    for other in (theirs, written_back(ours, theirs, tmp_path / "again")):
        close(ours(jnp.asarray(pixels)), other(torch.tensor(np.moveaxis(pixels, -1, 1))).logits)


@pytest.mark.parametrize(("model", "fields"), cases(TRANSLATORS))
def test_translator_opens(model, fields, tmp_path):
    theirs, ours = both(model, fields, tmp_path)
    source, target = texts(fields, 7), texts(fields, 9)
    is_source, start = np.arange(7) < np.array([7, 4, 1])[:, None], theirs.config.decoder_start_token_id
    target[:, 0] = start
    inputs = {"input_ids": torch.tensor(source), "attention_mask": torch.tensor(is_source.astype(int))}
    found = ours(jnp.asarray(source), jnp.asarray(target), jnp.asarray(is_source))
    for other in (theirs, written_back(ours, theirs, tmp_path / "again")):
        close(found, other(**inputs, decoder_input_ids=torch.tensor(target)).logits)


def gradients_agree(loss_of, ours, batch, theirs, loss, folder):
    """The losses are equal, and so are the gradients: theirs are saved in the places of parameters, and opened."""
    loss.backward()
    found, gradients = eqx.filter_value_and_grad(loss_of)(ours, batch)
    np.testing.assert_allclose(found, loss.item(), **CLOSE)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(parameter.grad)
    theirs.save_pretrained(folder)
    expected = pf.training.named_arrays(pf.open_model(folder)[0])
    for name, gradient in pf.training.named_arrays(gradients).items():
        np.testing.assert_allclose(gradient, expected[name], **CLOSE, err_msg=name)


def test_next_token_loss_has_the_gradients_of_gpt2(tmp_path):
    theirs, ours = both(transformers.GPT2LMHeadModel, GPT2, tmp_path)
    tokens = texts(GPT2)
    loss = theirs(torch.tensor(tokens), labels=torch.tensor(tokens)).loss  # it shifts the targets itself
    batch = pf.data.Windows(jnp.asarray(tokens[:, :-1]), jnp.asarray(tokens[:, 1:]))
    gradients_agree(pf.training.next_token_loss, ours, batch, theirs, loss, tmp_path / "gradients")


def test_masked_token_loss_has_the_gradients_of_bert(tmp_path):
    theirs, ours = both(transformers.BertForMaskedLM, BERT, tmp_path)
    tokens, is_token, draw = texts(BERT), np.arange(12) < np.array([12, 5, 1])[:, None], np.random.default_rng(2)
    segments, is_selected = draw.integers(2, size=(3, 12)), is_token & (draw.random((3, 12)) < 0.4)
    targets = (tokens + 3) % 17
    inputs = {"input_ids": tokens, "attention_mask": is_token.astype(int), "token_type_ids": segments}
    labels = np.where(is_selected, targets, -100)
    loss = theirs(**{name: torch.tensor(each) for name, each in inputs.items()}, labels=torch.tensor(labels)).loss
    batch = pf.data.MaskedBatch(*map(jnp.asarray, (tokens, targets, is_selected, is_token, segments)))
    gradients_agree(pf.masked_token_loss, ours, batch, theirs, loss, tmp_path / "gradients")


def test_classification_loss_has_the_gradients_of_vit(tmp_path):
    theirs, ours = both(transformers.ViTForImageClassification, VIT | {"num_labels": 5}, tmp_path)
    pixels = np.random.default_rng(4).uniform(size=(7, 8, 8, 3)).astype(np.float32)
    labels = np.arange(7) % 5
    loss = theirs(torch.tensor(np.moveaxis(pixels, -1, 1)), labels=torch.tensor(labels)).loss
    batch = pf.data.LabelledBatch(jnp.asarray(pixels), jnp.asarray(labels))
    gradients_agree(pf.classification_loss, ours, batch, theirs, loss, tmp_path / "gradients")


@pytest.mark.parametrize(
    ("model", "fields"), [(transformers.GPT2LMHeadModel, GPT2), (transformers.LlamaForCausalLM, LLAMA)]
)
def test_greedy_texts_for_prompts_of_unequal_length_are_theirs(model, fields, tmp_path):
    theirs, ours = both(model, fields, tmp_path)
    prompts = [[3, 1, 4, 1, 5], [9, 2], [6, 5, 3]]
    tokens, mask = np.zeros((3, 5), int), np.zeros((3, 5), int)
    for row, prompt in enumerate(prompts):
        tokens[row, 5 - len(prompt) :], mask[row, 5 - len(prompt) :] = prompt, 1
    options = {"attention_mask": torch.tensor(mask), "max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    expected = theirs.generate(torch.tensor(tokens), **options)
    found = pf.generate(ours, prompts, 5, temperature=0.0)
    assert [each.tokens for each in found] == expected[:, 5:].tolist()


def test_shards_and_half_precision_open(tmp_path):
    fields = DECODERS[transformers.LlamaForCausalLM][0]
    theirs, ours = both(transformers.LlamaForCausalLM, fields, tmp_path, max_shard_size="8KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    tokens = texts(fields)
    close(ours(jnp.asarray(tokens)), theirs(torch.tensor(tokens)).logits)
    theirs.to(torch.bfloat16).save_pretrained(tmp_path / "half")
    half, _ = pf.open_model(tmp_path / "half")
    # Opened anew, since `theirs` now has the speeds of its rotary pairs in bfloat16, too.
    expected = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "half", dtype=torch.float32)
    assert half.embedding.weight.dtype == jnp.float32
    close(half(jnp.asarray(tokens)), expected(torch.tensor(tokens)).logits)


@pytest.mark.parametrize(
    ("new", "dtype"), [(False, torch.float32), (True, torch.float16), (True, torch.bfloat16), (False, torch.float64)]
)
def test_torch_files_open_in_both_formats(new, dtype, tmp_path):
    fields = DECODERS[transformers.GPT2LMHeadModel][0]
    theirs, ours = both(transformers.GPT2LMHeadModel, fields, tmp_path)
    state = {name.removeprefix("transformer."): each.to(dtype) for name, each in theirs.state_dict().items()}
    state["h.0.attn.bias"] = torch.ones(1, 1, 23, 23)  # the mask, as in the published files
    torch.save(state, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=new)
    (tmp_path / "model.safetensors").unlink()
    again, _ = pf.open_model(tmp_path)
    for name, array in pf.training.named_arrays(again).items():
        np.testing.assert_allclose(array, pf.training.named_arrays(ours)[name], rtol=0.01)


def test_the_folder_of_the_readme_is_opened_alike():
    """The folder that the script of README.md is tested with: `transformers` wrote it, and opens it still."""
    folder = Path(__file__).parents[1] / "pretrained" / "their_gpt2"
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model, tokenizer = pf.open_model(folder)
    ids = tokenizer.encode("Anna goes to the garden.")
    assert transformers.AutoTokenizer.from_pretrained(folder)("Anna goes to the garden.")["input_ids"] == ids
    with torch.no_grad():
        expected = theirs(torch.tensor([ids])).logits[0].numpy()
    np.testing.assert_allclose(model(jnp.asarray(ids)), expected, rtol=1e-5, atol=1e-4)


def test_the_published_model_of_chemistry_has_their_numbers():
    """An ALBERT of molecules, as its own library opens it: logits of a reaction, and of one with hidden tokens."""
    folder = pf.pretrained.packaged_folder("rxnmapper")
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    model, _ = pf.open_model(folder, tokenizer=False)
    tokenizer = pf.pretrained.SmilesTokenizer.in_folder(folder)
    for text in ("CC(=O)O.OCC>>CC(=O)OCC", "Fc1cccnc1F.CC(C)S>>CC(C)Sc1ncccc1F"):
        ids = np.asarray(tokenizer.encode(text))
        ids[3::5] = tokenizer.special["[MASK]"]
        with torch.no_grad():
            expected = theirs(torch.tensor(ids[None])).logits[0].numpy()
        found = model(jnp.asarray(ids), None, jnp.zeros(len(ids), int))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
