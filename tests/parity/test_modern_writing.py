"""Min-p and penalties against Hugging Face's processors of logits, alone and in greedy and beam search."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinPLogitsWarper,
    PrefixConstrainedLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
)

import plainformer as pf
from plainformer.generation import allowed_texts, penalise_repetition
from plainformer.pretrained.pretrained import open_model

VOCAB = 17
SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20}
PROMPTS = [[3, 1, 4, 1, 5], [9, 2, 6, 5, 3], [5, 8, 9, 7, 9]]
LETTERS = pf.Vocabulary("abcdefghijklmnop", special=["<stop>"])


def their_logits(*processors):
    """What the processors make of three rows of logits after three texts, and the rows."""
    logits = torch.tensor(np.random.default_rng(0).normal(size=(3, VOCAB)) * 3, dtype=torch.float32)
    return logits.numpy(), LogitsProcessorList(processors)(torch.tensor(PROMPTS), logits.clone())


@pytest.mark.parametrize(("min_p", "temperature"), [(0.02, 1.7), (0.1, 0.5), (1.0, 1.0)])
def test_min_p_is_theirs(min_p, temperature):
    logits, theirs = their_logits(TemperatureLogitsWarper(temperature), MinPLogitsWarper(min_p))
    for ours, expected in zip(logits, theirs.softmax(dim=-1).numpy(), strict=True):
        found = pf.next_token_probabilities(jnp.asarray(ours), temperature=temperature, min_p=min_p)
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("penalty", [0.7, 1.2])
def test_penalise_repetition_is_theirs(penalty):
    logits, theirs = their_logits(RepetitionPenaltyLogitsProcessor(penalty))
    for row, prompt, expected in zip(logits, PROMPTS, theirs.numpy(), strict=True):
        found = penalise_repetition(jnp.asarray(row), jnp.asarray([*prompt, -1]), penalty)
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A small Llama of theirs, drawn, and the same as ours."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        **SIZES, vocab_size=VOCAB, max_position_embeddings=32, bos_token_id=None, eos_token_id=None, pad_token_id=0
    )
    theirs = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)
    folder = tmp_path_factory.mktemp("llama")
    theirs.save_pretrained(folder)
    return theirs, open_model(folder, tokenizer=False)[0]


def repetition(logits, prompt, written):
    return penalise_repetition(logits, jnp.concatenate([prompt, written]), 1.4)


@pytest.mark.parametrize("beams", [1, 3])
def test_writing_with_a_repetition_penalty_is_theirs(models, beams):
    theirs, ours = models
    options = {"max_new_tokens": 8, "do_sample": False, "num_beams": beams, "length_penalty": 1.0}
    expected = theirs.generate(torch.tensor(PROMPTS), repetition_penalty=1.4, **options)[:, 5:].tolist()
    if beams == 1:
        found = [each.tokens for each in pf.generate(ours, PROMPTS, 8, temperature=0, adjust=repetition)]
    else:
        found = [each[0].tokens for each in pf.beam_search(ours, PROMPTS, 8, beam_width=beams, adjust=repetition)]
    assert found == expected
    assert found != [each.tokens for each in pf.generate(ours, PROMPTS, 8, temperature=0)]


@pytest.mark.parametrize("beams", [1, 3])
def test_writing_within_a_pattern_is_theirs(models, beams):
    theirs, ours = models
    allowed = allowed_texts("([a-d][e-h]){2,6}[i-p]", LETTERS, 0)

    def may_come(_, ids):
        written = jnp.asarray([*ids.tolist()[5:], *[-1] * 8][:8])
        return np.flatnonzero(allowed.allowed(written)).tolist()

    options = {"max_new_tokens": 8, "do_sample": False, "num_beams": beams, "length_penalty": 1.0}
    processor = LogitsProcessorList([PrefixConstrainedLogitsProcessor(may_come, beams)])
    expected = theirs.generate(torch.tensor(PROMPTS), logits_processor=processor, **options)[:, 5:].tolist()
    if beams == 1:
        found = [each.tokens for each in pf.generate(ours, PROMPTS, 8, temperature=0, adjust=allowed)]
    else:
        found = [each[0].tokens for each in pf.beam_search(ours, PROMPTS, 8, beam_width=beams, adjust=allowed)]
    assert found == expected
