"""The decoder: what it computes, that it sees no future, and that reading with a cache changes nothing."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from flat import decoder_config
from tiers import few_in_the_gate
from toy_models import drawn

import plainformer as pf

VOCAB, CONTEXT, SEQ, D_MODEL, HEADS, KV_HEADS, D_FF, BATCH = 11, 9, 7, 24, 6, 2, 10, (2, 3)
GROUPED = {"num_kv_heads": KV_HEADS}
MODERN = {"norm": "rms", "activation": "swiglu", "use_bias": False, "tied_embedding": False}
KINDS = {
    "learned": {"position_scheme": "learned"},
    "sinusoidal-grouped-post": {"position_scheme": "sinusoidal", "norm_placement": "post", **GROUPED},
    "rotary-grouped-modern": {"position_scheme": "rotary", **GROUPED, **MODERN},
    "relative-grouped": {"position_scheme": "relative", **GROUPED},
    "alibi-post-modern": {"position_scheme": "alibi", "norm_placement": "post", **MODERN},
    "window-half-rotary": {
        "position_scheme": "rotary",
        "rotary_fraction": 0.5,
        "window": 3,
        "qk_norm": True,
        "parallel": True,
        "d_v": 5,
        "embedding_norm": True,
        **GROUPED,
    },
    "output-norm-rows": {"norm_placement": "output", "qk_norm": True, "qk_norm_over": "row", **GROUPED},
    "sinks-grouped": {"sinks": True, **GROUPED},
    "pattern-rotary": {"position_scheme": "rotary", "window": 3, "pattern": ("window", "full")},
    "experts": {
        "experts": pf.blocks.ExpertsConfig(num_experts=5, per_token=2, width=7, shared=1, dense_layers=1),
        **MODERN,
    },
    "delta-rotary": {"position_scheme": "rotary", "pattern": ("delta", "full"), "d_k": 2, "d_v": 5},
    "delta-modern": {"position_scheme": "none", "pattern": ("delta",), "num_kv_heads": 2, **MODERN},
    "window-relative": {"position_scheme": "relative", "num_buckets": 6, "max_distance": 5, "window": 4},
}
KEY = jax.random.key(20170612)
NUMBERS = np.random.default_rng(6)
TEXT = jnp.asarray(NUMBERS.integers(VOCAB, size=SEQ))
# Texts of this one shape in all tests, so that what reads them is compiled once.
SIX = jnp.asarray(NUMBERS.integers(VOCAB, size=(*BATCH, SEQ)))
call = eqx.filter_jit(lambda model, tokens: model(tokens))


@functools.cache
def new_model(kind="learned", num_layers=2, **fields):
    """A decoder with all its parameters drawn: biases of zero would hide a slip, small positions an offset."""
    return drawn(pf.Decoder, decoder_config(VOCAB, CONTEXT, **sizes(num_layers), **KINDS[kind] | fields))


def sizes(num_layers=2):
    return {"d_model": D_MODEL, "num_layers": num_layers, "num_heads": HEADS, "d_ff": D_FF}


def read(model, tokens, cache, positions=None):
    """Logits of further tokens, and the longer cache."""
    rows, cache = model.extend(tokens, cache, positions)
    return model.logits(rows), cache


compiled_read = eqx.filter_jit(read)


def read_pieces(model, tokens, lengths, positions=None):
    """Logits of the first tokens of texts, read in pieces of these lengths, and the cache that holds them."""
    cache, pieces, start = model.make_cache(batch=tokens.shape[:-1]), [], 0
    for length in lengths:
        place = np.s_[..., start : start + length]
        logits, cache = compiled_read(model, tokens[place], cache, None if positions is None else positions[place])
        pieces, start = [*pieces, logits], start + length
    return np.concatenate(pieces, axis=-2), cache


@pytest.mark.equation("eq-decoder-model")
@pytest.mark.parametrize("kind", ["sinusoidal-grouped-post", "rotary-grouped-modern"])
def test_decoder_agrees_with_a_loop_in_float64(kind):
    model = new_model(kind)
    logits = model(TEXT)
    assert logits.shape == (SEQ, VOCAB)
    assert_close(logits, reference.decoder(TEXT, model))


@pytest.mark.equation("eq-decoder-model", "eq-generation-cached-attention")
@pytest.mark.parametrize("kind", few_in_the_gate(KINDS, 2))
def test_decoder_extend_of_any_batch_equals_the_full_call(kind):
    model = new_model(kind)
    logits, cache = read_pieces(model, SIX, [2, 1, 2, 2])
    expected = eqx.filter_jit(model)(SIX)
    assert expected.shape == (*BATCH, SEQ, VOCAB)
    assert_close(logits, expected)
    assert {int(part.length) for part in cache if hasattr(part, "length")} <= {SEQ}  # a state has none
    assert all((part.positions.max(axis=-1) == SEQ - 1).all() for part in cache)


@pytest.mark.equation("eq-generation-cache")
def test_compiled_decoder_extend_equals_the_full_call_for_every_split_of_a_prompt():
    model, prompt = new_model("rotary-grouped-modern"), TEXT[:5]
    expected = model(TEXT)[:5]
    for cuts in itertools.product([False, True], repeat=4):
        ends = [place + 1 for place, cut in enumerate(cuts) if cut] + [5]
        cache, pieces, start = model.make_cache(), [], 0
        for end in ends:
            logits, cache = compiled_read(model, prompt[start:end], cache)
            pieces, start = [*pieces, logits], end
        assert_close(np.concatenate(pieces), expected)


@pytest.mark.parametrize("kind", ["learned", "relative-grouped"])
def test_decoder_extend_ignores_padding_in_front(kind):
    model, padded = new_model(kind), np.array([[0, 2, 5], [1, 3, 4]])
    positions = np.maximum(np.arange(SEQ) - padded[..., None], -1)
    logits, _ = read_pieces(model, jnp.where(positions < 0, 0, SIX), [2, 2, 2, 1], jnp.asarray(positions))
    assert np.isfinite(logits).all()
    texts = np.zeros(SIX.shape, int)  # each without its padding: what follows does not matter
    for place, start in np.ndenumerate(padded):
        texts[place][: SEQ - start] = SIX[place][start:]
    alone = model(jnp.asarray(texts))
    for place, start in np.ndenumerate(padded):
        assert_close(logits[place][start:], alone[place][: SEQ - start])


def test_decoder_extend_counts_on_from_each_texts_last_position():
    model, start = new_model(), np.array([[0, 2, 1], [3, 1, 2]])[..., None]
    positions = jnp.asarray(np.maximum(np.arange(4) - start, -1))
    _, cache = read_pieces(model, SIX, [2, 2], positions)
    found, longer = read(model, SIX[..., 4:6], cache)
    expected, _ = read(model, SIX[..., 4:6], cache, jnp.asarray(4 - start + np.arange(2)))
    np.testing.assert_array_equal(found, expected)
    assert longer[0].positions[..., 5].tolist() == [[5, 3, 4], [2, 4, 3]]


class Given(eqx.Module):
    """An embedding that gives the same rows whatever the tokens are, so that one can differentiate by them."""

    rows: jax.Array

    def __call__(self, ids):
        return self.rows


@pytest.mark.equation("eq-decoder-model")
def test_decoder_lets_no_gradient_back_from_the_future():
    model, probe = new_model("rotary-grouped-modern"), jnp.asarray(NUMBERS.normal(size=VOCAB), float)

    def mixed(rows):
        return eqx.tree_at(lambda m: m.embedding, model, Given(rows))(TEXT) @ probe

    reach = np.abs(jax.jit(jax.jacrev(mixed))(model.embedding(TEXT))).sum(axis=2)
    assert (reach[np.triu_indices(SEQ, 1)] == 0.0).all()
    assert (reach[np.tril_indices(SEQ)] > 0).all()


def test_decoder_last_matrices_start_smaller():
    num_layers, width = 3, 64
    fields = {"d_model": width, "num_layers": num_layers, "num_heads": 4, "d_ff": width, "tied_embedding": False}
    # All matrices are of one shape: drawn by one program.
    model = pf.Decoder(decoder_config(width, width, **fields), key=KEY)
    for block in model.stack.blocks:
        for linear, smaller in [
            (block.attention.output, (2 * num_layers) ** 0.5),
            (block.feed_forward.down, (2 * num_layers) ** 0.5),
            (block.feed_forward.up, 1),
        ]:
            assert abs(np.asarray(linear.weight).std() * smaller * width**0.5 - 1) < 0.05


def test_decoder_has_as_many_parameters_as_counted_by_hand():
    def count(**fields):
        config = decoder_config(VOCAB, CONTEXT, **sizes(5), **fields)
        return pf.count_parameters(eqx.filter_eval_shape(lambda key: pf.Decoder(config, key=key), KEY))

    block = 4 * (24 * 24 + 24) + (24 * 10 + 10) + (10 * 24 + 24) + 2 * 48
    assert count() == 11 * 24 + 9 * 24 + 5 * block + 48
    assert count(position_scheme="sinusoidal", tied_embedding=False) == 11 * 24 + 5 * block + 48 + 24 * 11
    assert count(position_scheme="relative") == 11 * 24 + 32 * 6 + 5 * block + 48
    modern = 2 * 24 * 24 + 2 * 24 * 8 + 3 * 24 * 10 + 2 * 24
    assert count(position_scheme="rotary", **GROUPED, **MODERN) == 11 * 24 + 5 * modern + 24 + 24 * 11


# --- at its edges: texts that are too long, caches that do not fit, and what a reader is told ----------------


def test_decoder_new_cache_has_the_room_that_is_asked_for():
    model = new_model("relative-grouped")
    assert [part.keys.shape for part in model.make_cache(4, batch=BATCH)] == [(*BATCH, KV_HEADS, 4, 4)] * 2
    assert [part.values.shape for part in model.make_cache()] == [(KV_HEADS, CONTEXT, 4)] * 2


def read_beyond_its_capacity():
    _, cache = read_pieces(new_model(), SIX, [2, 2, 2, 1])
    _, cache = read(new_model(), SIX[..., :1], cache)
    new_model().extend(SIX[..., :2], cache)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: new_model()(jnp.zeros((2, 10), int)), ValueError, "tokens has 10 tokens"),
        (lambda: new_model()(jnp.zeros(0, int)), ValueError, "tokens has 0 tokens"),
        (lambda: new_model()("a text"), TypeError, "Encode it first"),
        (lambda: new_model()(TEXT.astype(float)), TypeError, "tokens holds float32"),
        (lambda: new_model()(jnp.array([[0, -1]])), ValueError, r"ids\[0, 1\] is -1"),
        (lambda: new_model().residual_stream(jnp.zeros(10, int)), ValueError, "tokens has 10 tokens"),
        (read_beyond_its_capacity, ValueError, "room for 9 tokens and holds 8"),
        (lambda: new_model().extend(TEXT, new_model(num_layers=3).make_cache()), ValueError, "3 parts"),
        (lambda: new_model().extend(TEXT, new_model("relative-grouped").make_cache()), ValueError, r"cache\.keys"),
        (lambda: new_model().extend(SIX[0, :2], new_model().make_cache(batch=(3,))), ValueError, "batch="),
        (lambda: new_model().extend(TEXT, new_model().make_cache(), jnp.arange(3)), ValueError, "positions"),
        (lambda: new_model().extend(TEXT[:2], new_model().make_cache(), jnp.array([8, 9])), ValueError, "positions"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"window": CONTEXT + 1, "pattern": ("window", "full")}, "window is 10"),
        ({"output_bias": True}, "output_bias"),
    ],
)
def test_decoder_config_names_what_is_wrong_before_a_model_is_made(fields, message):
    with pytest.raises(ValueError, match=message):
        decoder_config(VOCAB, CONTEXT, **fields)


@pytest.mark.run_time_check
def test_compiled_decoder_extend_names_a_full_cache():
    model = new_model("rotary-grouped-modern")
    _, cache = compiled_read(model, TEXT[:4], model.make_cache())
    _, cache = compiled_read(model, TEXT[:4], cache)
    _, full = compiled_read(model, TEXT[:1], cache)
    assert [int(part.length) for part in full] == [CONTEXT, CONTEXT]
    for tokens, held in [(TEXT[:2], cache), (TEXT[:1], full)]:
        with pytest.raises(RuntimeError, match=rf"cache\.length .* so that {len(tokens)} tokens fit into 9"):
            jax.block_until_ready(compiled_read(model, tokens, held))
