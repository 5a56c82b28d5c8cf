"""Writing beyond the context, in a stream, at any place of the list, and with few programs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.generation import sampling
from plainformer.positions.positions import add_positions

VOCAB, CONTEXT = 11, 6


def decoder(scheme: str, key, context_len: int = CONTEXT) -> pf.Decoder:
    """A decoder of two blocks, so that what a token saw reaches later ones, too."""
    stack = pf.StackConfig(d_model=12, num_layers=2, num_heads=3, num_kv_heads=1, position_scheme=scheme)
    made = eqx.filter_jit(pf.Decoder)(pf.DecoderConfig(VOCAB, context_len, stack=stack), key=key)
    return jax.tree.map(lambda leaf: 3 * leaf if eqx.is_inexact_array(leaf) else leaf, made)  # so that texts differ


LONGEST = 24  # texts are padded to this behind, so that one program serves them all


@eqx.filter_jit
def full_pass(model: pf.Decoder, text, window: int):
    """The logits at each token of a text, of which each sees the last so many, itself among them."""
    places = jnp.arange(len(text))
    near = (places[:, None] >= places) & (places[:, None] - places < window)
    x = add_positions(model.embedding(text), model.stack.scheme, None)
    return model.logits(model.stack(x, near))


def logits_after(model: pf.Decoder, text: list[int], window: int) -> np.ndarray:
    """The logits at the last token of a text."""
    padded = jnp.asarray(text + [0] * (LONGEST - len(text)))
    return np.asarray(full_pass(model, padded, window))[len(text) - 1]


@pytest.mark.parametrize("scheme", ["rotary", "relative"])
def test_a_window_slides_over_a_longer_text(scheme, key):
    model, prompts = decoder(scheme, key), [[3], [1, 2, 3, 4], [5, 4, 3, 2, 1, 0]]
    for prompt, found in zip(prompts, pf.generate(model, prompts, 14, temperature=0), strict=True):
        text = list(prompt)
        for token, log_prob in zip(found.tokens, found.log_probs, strict=True):
            logits = logits_after(model, text, CONTEXT)
            assert token == logits.argmax()
            np.testing.assert_allclose(log_prob, jax.nn.log_softmax(logits)[token], rtol=1e-3, atol=1e-4)
            text.append(token)


def test_of_a_prompt_longer_than_the_context_the_last_tokens_are_read(key):
    model, prompt = decoder("alibi", key), [1, 2, 3, 4, 5, 6, 7, 8, 9]
    (long,), (short,) = (pf.generate(model, [each], 5, temperature=0) for each in (prompt, prompt[-CONTEXT:]))
    assert long == short


def test_schemes_that_add_to_vectors_say_why_no_window_slides(key):
    with pytest.raises(ValueError, match="context_len=6"):
        pf.generate(decoder("learned", key), [[1, 2, 3]], 5, temperature=0)


def test_a_full_cache_forgets_the_oldest_tokens_only_if_it_slides(key):
    layer = pf.MultiHeadAttention(8, 2, key=key)
    cache = layer.make_cache(3, sliding=True)
    for place in range(5):
        rows = jnp.full((2, 1, 4), float(place))
        cache = cache.append(rows, rows, jnp.asarray([place]))
    assert sorted(cache.positions.tolist()) == [2, 3, 4]
    rows = jnp.arange(16.0).reshape(2, 2, 4)
    at_once = layer.make_cache(3, sliding=True).append(rows, rows, jnp.arange(2))
    assert at_once.positions.tolist() == [0, 1, -1]
    np.testing.assert_array_equal(at_once.values[:, :2], rows)
    np.testing.assert_array_equal(at_once.keys[:, :, :2], rows.mT)
    # The first of two would have to see what the second one overwrites.
    with pytest.raises(ValueError, match="room"):
        at_once.append(rows, rows, jnp.arange(2, 4))
    fixed = layer.make_cache(3).append(jnp.ones((2, 3, 4)), jnp.ones((2, 3, 4)), jnp.arange(3))
    with pytest.raises(ValueError, match="room"):
        fixed.append(rows[:, :1], rows[:, :1], jnp.asarray([3]))


@pytest.mark.parametrize(
    ("options", "max_new_tokens"), [({"temperature": 0.0}, 4), ({"temperature": 1.3, "top_k": 5}, 15)]
)
def test_a_stream_is_what_would_be_returned(options, max_new_tokens, key):
    model, prompts = decoder("rotary", key), [[3], [1, 2, 3], [3]]
    whole = pf.generate(model, prompts, max_new_tokens, stop_tokens=[2], key=key, **options)
    stream = pf.generate(model, prompts, max_new_tokens, stop_tokens=[2], key=key, stream=True, **options)
    columns = [[token for token in column if token is not None] for column in zip(*stream, strict=True)]
    assert columns == [each.tokens for each in whole]


def test_a_stream_says_at_once_what_is_wrong(key):
    with pytest.raises(ValueError, match=r"prompts\[0\] is empty"):
        pf.generate(decoder("none", key), [[]], 5, temperature=0, stream=True)


def test_what_is_drawn_does_not_depend_on_the_place_in_the_list(key):
    model = decoder("rotary", key)
    prompts = [[1, 2], [3], [4, 5, 6], [3]]
    found = {place: each.tokens for place, each in enumerate(pf.generate(model, prompts, 12, key=key))}
    turned = [each.tokens for each in pf.generate(model, [[4, 5, 6], [3], [1, 2], [3]], 12, key=key)]
    assert turned == [found[2], found[1], found[0], found[3]]
    assert found[1] != found[3]  # equal prompts have streams of their own
    assert pf.generate(model, [[3]], 12, key=key)[0].tokens == found[1]


def test_few_programs_serve_prompts_of_many_lengths(key, caplog):
    model, programs = decoder("learned", key, context_len=320), []
    with jax.log_compiles():
        for lengths in (range(1, 301, 25), range(2, 301, 45)):
            caplog.clear()
            for length in lengths:
                pf.generate(model, [[1] * length], 3, temperature=0)
            programs.append([line for line in caplog.messages if line.startswith("Compiling")])
    assert sum("_generate" in line for line in programs[0]) == 6  # 16, 32, 64, 128, 256, 320
    assert len(programs[0]) <= 12
    assert programs[1] == []


def test_padding_does_not_change_what_is_written(key):
    model = decoder("learned", key, context_len=LONGEST)
    for length in (1, 16, 17):
        prompt = [(3 * place) % VOCAB for place in range(length)]
        (found,) = pf.generate(model, [prompt], 4, temperature=0)
        text = list(prompt)
        for token in found.tokens:
            assert token == logits_after(model, text, LONGEST).argmax()
            text.append(token)


def test_a_model_of_ones_own_need_not_know_windows(key):
    class Plain:
        """Without `can_slide`, and with a `make_cache` that takes no `sliding`."""

        def __init__(self, inner):
            self.config, self.extend, self.logits = inner.config, inner.extend, inner.logits
            self.make_cache = lambda capacity=None, *, batch=(): inner.make_cache(capacity, batch=batch)

    inner = decoder("rotary", key)
    assert pf.generate(Plain(inner), [[1]], 3, temperature=0) == pf.generate(inner, [[1]], 3, temperature=0)
    with pytest.raises(ValueError, match="expected at most context_len=6"):
        pf.generate(Plain(inner), [[1]], 9, temperature=0)


def test_beams_of_several_prompts_are_those_of_each(key):
    model, prompts = decoder("learned", key, context_len=12), [[1, 2], [3], [4, 5, 6]]
    options = {"length_power": 0.5, "stop_tokens": [2]}
    together = pf.beam_search(model, prompts, 6, beam_width=3, **options)
    for prompt, found in zip(prompts, together, strict=True):
        alone = pf.beam_search(model, prompt, 6, beam_width=3, **options)
        assert [each.tokens for each in found] == [each.tokens for each in alone]
        np.testing.assert_allclose([each.score for each in found], [each.score for each in alone], rtol=1e-4)


def test_a_stream_gives_the_cache_away_rather_than_copy_it(key, monkeypatch):
    steps, compiled = [], sampling._next_step_compiled
    monkeypatch.setattr(
        sampling, "_next_step_compiled", lambda given, step: steps.append(step) or compiled(given, step)
    )
    list(pf.generate(decoder("rotary", key), [[1]], 4, temperature=0, stream=True))
    assert [step.cache[0].key_columns.is_deleted() for step in steps] == [True] * 3


def test_scheme_of_ones_own_slides_only_if_it_says_that_it_may(key):
    class Turning(pf.RotaryPositions):
        """A turn by the difference of positions."""

    class Table(pf.PositionScheme):
        """A factor for each of the places that there are, in the method that turns."""

        def rotate(self, rows, positions=None):
            factors = jnp.arange(1.0, CONTEXT + 1)
            return rows * factors[jnp.arange(rows.shape[-2]) if positions is None else positions][..., None]

    def with_scheme(scheme):
        return eqx.tree_at(lambda each: each.stack.scheme, decoder("none", key), scheme, is_leaf=lambda x: x is None)

    assert len(pf.generate(with_scheme(Turning()), [[1]], 2 * CONTEXT, temperature=0)[0].tokens) == 2 * CONTEXT
    with pytest.raises(ValueError, match="can_slide"):
        pf.generate(with_scheme(Table()), [[1]], 2 * CONTEXT, temperature=0)
