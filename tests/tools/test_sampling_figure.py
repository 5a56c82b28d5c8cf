"""The live figure of sampling stands on the stored model's own numbers."""

import json

import numpy as np
import sampling_figure

from plainformer.models.stored import load_pretrained


def test_sampling_figure_has_the_stored_models_logits():
    stored = json.loads(sampling_figure.NUMBERS.read_text("utf-8"))
    made = sampling_figure.sampling_numbers(*load_pretrained("decoder"))
    assert stored["vocabulary"] == made["vocabulary"]
    assert [prompt["text"] for prompt in stored["prompts"]] == sampling_figure.PROMPTS
    for old, new in zip(stored["prompts"], made["prompts"], strict=True):
        # Other machines add in another order, and what is stored is rounded to four decimals.
        np.testing.assert_allclose(old["logits"], new["logits"], rtol=0, atol=2e-3)


def test_sampling_figure_has_a_certain_and_an_open_prompt():
    """The prompts are chosen to differ: nearly certain, open between a few letters, and open between many."""
    stored = json.loads(sampling_figure.NUMBERS.read_text("utf-8"))
    sure, some, many = (_perplexity(np.array(prompt["logits"])) for prompt in stored["prompts"])
    assert sure < 1.5 < some < many
    assert many > 8


def _perplexity(logits):
    log_probs = logits - np.logaddexp.reduce(logits)
    return np.exp(-(np.exp(log_probs) * log_probs).sum())
