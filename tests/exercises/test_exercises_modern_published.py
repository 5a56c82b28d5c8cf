"""The exercise `published_parameters` of the chapter `modern`, beyond what `test_exercises_mistakes` tests of all."""

import re

import equinox as eqx
import jax
import pytest
from exercise_checks import complaint, in_numpy
from readers_answers_modern_published import counted_by

import plainformer as pf


@pytest.mark.parametrize("name", ["Llama 3 8B", "SmolLM2 135M", "Mistral 7B", "gpt-oss 20b"])
def test_the_right_answer_counts_published_models(name):
    config = pf.models.PUBLISHED[name].config
    stack = config.stack
    heads = stack.num_heads, stack.num_kv_heads, stack.key_width
    given = config.vocab_size, stack.d_model, stack.num_layers, *heads, stack.inner_width
    found = int(counted_by()(*given, stack.use_bias, config.tied_embedding))
    if stack.experts is None:
        assert found == pf.models.planned_parameters(config)
        return
    # All but the experts: their networks in place of one, the router with its biases, and the sinks.
    block = eqx.filter_eval_shape(pf.make_block, stack, key=jax.random.key(0))
    experts, network = pf.count_parameters(block.feed_forward), 3 * stack.d_model * stack.inner_width
    assert found + stack.num_layers * (experts - network + stack.num_heads) == pf.models.planned_parameters(config)


def test_what_no_known_mistake_explains():
    def one_more(*sizes):
        return counted_by()(*sizes) + 1

    assert re.search(r"It is \d+ instead of \d+", complaint("published_parameters", in_numpy(one_more)))
