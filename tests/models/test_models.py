"""What all models share: every option acts, any batch will do, and all let one look inside."""

import functools
import itertools
import operator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from all_models import BATCH, D_MODEL, DRAWS, HEADS, KINDS, LAYERS, SEQ, new_model, plain_logits, plain_model, texts
from closeness import assert_close

import plainformer as pf
from plainformer.attention import LatentConfig

key_of = jax.random.key
all_kinds = pytest.mark.parametrize("kind", KINDS)
SCALINGS = {
    "linear": pf.positions.LinearScaling(factor=4.0),
    "ntk": pf.positions.NtkScaling(factor=8.0),
    "parts": pf.positions.RotaryScaling(factor=4.0, slow_turns=0.1, fast_turns=0.7, trained_len=5),
    "yarn": pf.positions.YarnScaling(factor=8.0, slow_turns=0.1, fast_turns=0.7, trained_len=5),
}
# Every option of a stack, alone and in the company that today's language models keep: for a decoder, which shows that
# each acts. All models hand theirs to the same blocks (test_dropped_keys.py); so the others take them in COMPANIES.
OPTIONS = {
    "grouped": {"num_kv_heads": 2},
    "one-kv-head": {"num_kv_heads": 1},
    "d_k": {"d_k": 6},
    "d_v": {"d_v": 3},
    "odd-width-of-heads": {"d_k": 2, "d_v": 3, "num_heads": 5},
    "d_ff": {"d_ff": 13},
    "default-d_ff": {"d_ff": None},
    "rms": {"norm": "rms"},
    "eps": {"norm_eps": 0.5},
    "post": {"norm_placement": "post"},
    "relu": {"activation": "relu"},
    "gelu_tanh": {"activation": "gelu_tanh"},
    "silu": {"activation": "silu"},
    "quick_gelu": {"activation": "quick_gelu"},
    "squared_relu": {"activation": "squared_relu"},
    "swiglu": {"activation": "swiglu"},
    "geglu": {"activation": "geglu"},
    "geglu_tanh": {"activation": "geglu_tanh"},
    "qk_norm": {"qk_norm": True, "norm_eps": 0.1},
    "output-norm": {"norm_placement": "output"},
    "sandwich": {"norm_placement": "sandwich"},
    "norm-across-heads": {"qk_norm": True, "qk_norm_over": "row", "num_kv_heads": 3},
    "window": {"window": 2},
    "window-alibi": {"window": 3, "position_scheme": "alibi"},
    "window-sinusoidal": {"window": 1, "position_scheme": "sinusoidal"},
    "sinks": {"sinks": True},
    "pattern": {"window": 2, "pattern": ("full", "window", "window"), "num_layers": 4},
    "sinusoidal": {"position_scheme": "sinusoidal"},
    "rotary": {"position_scheme": "rotary"},
    "rotary-half": {"position_scheme": "rotary", "rotary_fraction": 0.5, "qk_norm": True, "window": 4},
    **{
        f"rotary-{name}": {"position_scheme": "rotary", "rope_theta": 30.0, "rope_scaling": scaling}
        for name, scaling in SCALINGS.items()
    },
    "relative": {"position_scheme": "relative"},
    "buckets": {"position_scheme": "relative", "num_buckets": 8, "max_distance": 5},
    "alibi": {"position_scheme": "alibi"},
    "none": {"position_scheme": "none"},
    "no-bias": {"use_bias": False},
    "one-layer": {"num_layers": 1},
    "latent": {"latent": LatentConfig(width=7, rotary_width=2), "position_scheme": "rotary", "rope_theta": 50.0},
    "latent-query": {
        "latent": LatentConfig(width=5, rotary_width=2, query_width=9),
        "position_scheme": "alibi",
        "window": 3,
    },
    "experts": {"experts": pf.blocks.ExpertsConfig(num_experts=5, per_token=2, width=7)},
    "experts-shared": {
        "experts": pf.blocks.ExpertsConfig(
            **{"num_experts": 6, "per_token": 3, "width": 6, "shared": 2, "scale": 2.5, "dense_layers": 1},
            **{"scores": "sigmoid", "renormalise": False, "moved_bias": True, "groups": 3, "chosen_groups": 2},
        )
    },
    "experts-full": {
        "experts": pf.blocks.ExpertsConfig(num_experts=3, per_token=1, width=7, renormalise=False, capacity=1.0)
    },
    "modern": {
        "norm": "rms",
        "activation": "swiglu",
        "use_bias": False,
        "num_kv_heads": 2,
        "position_scheme": "rotary",
        "rope_theta": 50.0,
    },
    "post-alibi-grouped": {"norm_placement": "post", "position_scheme": "alibi", "num_kv_heads": 2},
    "post-sinusoidal-rms": {"norm_placement": "post", "position_scheme": "sinusoidal", "norm": "rms"},
}
COMPANIES = [
    ("window", "relu", "grouped", "d_ff"),
    ("window-alibi", "gelu_tanh", "post"),
    ("window-sinusoidal", "silu", "rms", "one-kv-head"),
    ("sinusoidal", "quick_gelu", "eps", "d_k"),
    ("rotary", "squared_relu", "no-bias", "d_v"),
    ("rotary-half", "swiglu", "default-d_ff"),
    *((f"rotary-{name}",) for name in SCALINGS),
    ("relative", "geglu", "odd-width-of-heads"),
    ("buckets", "geglu_tanh", "one-layer"),
    ("alibi", "sandwich", "sinks", "experts-full"),
    ("none", "qk_norm", "pattern", "experts-shared"),
    ("output-norm", "norm-across-heads"),
    ("latent",),
    ("latent-query",),
    ("modern", "experts"),
    ("post-alibi-grouped",),
    ("post-sinusoidal-rms",),
]
OWN_OPTIONS = [
    ("decoder", {"tied_embedding": False}),
    ("decoder", {"tied_embedding": False, "output_bias": True}),
    ("decoder", {"embedding_norm": True}),
    ("decoder", {"pattern": ("delta", "delta", "full"), "num_layers": 4, "position_scheme": "rotary"}),
    ("decoder", {"pattern": ("delta", "window"), "window": 3, "norm": "rms", "num_kv_heads": 2, "parallel": True}),
    *((kind, {"parallel": True}) for kind in ("decoder", "encoder", "masked", "classifier", "vit")),
    ("encoder", {"use_class_token": True}),
    ("encoder", {"embedding_norm": True}),
    ("masked", {"use_class_token": True, "norm_placement": "post"}),
    ("classifier", {"pooling": "mean"}),
    ("classifier", {"pooling": "mean", "use_class_token": True}),
    ("classifier", {"pooler": True}),
    ("vit", {"pooling": "mean"}),
    ("vit", {"position_scheme": "sinusoidal_2d"}),
    ("vit", {"position_scheme": "sinusoidal_2d", "pooling": "mean"}),
    ("seq2seq", {"tied_embedding": False}),
    ("seq2seq", {"source_vocab_size": 13}),
    ("seq2seq", {"num_encoder_layers": 1, "num_decoder_layers": 3}),
]
OTHERS = [kind for kind in KINDS if kind != "decoder"]
# Which are of one path with another option, and so are tried in company alone.
IN_COMPANY_ONLY = {"one-kv-head", "odd-width-of-heads", "gelu_tanh", "silu", "quick_gelu", "geglu_tanh", "default-d_ff"}
IN_COMPANY_ONLY |= {"window-alibi", "window-sinusoidal", "one-layer", "post-alibi-grouped", "post-sinusoidal-rms"}


def in_company(number, company):
    """Several options at once, for one of the other models."""
    kind = OTHERS[number % len(OTHERS)]
    fields = functools.reduce(operator.or_, map(OPTIONS.get, company))
    return pytest.param(kind, fields, id=f"{kind}-{'-'.join(company)}")


every_option = pytest.mark.parametrize(
    ("kind", "fields"),
    [
        pytest.param("decoder", fields, id=f"decoder-{name}")
        for name, fields in OPTIONS.items()
        if name not in IN_COMPANY_ONLY
    ]
    + list(itertools.starmap(in_company, enumerate(COMPANIES)))
    + [pytest.param(kind, fields, id=f"{kind}-{'-'.join(fields)}") for kind, fields in OWN_OPTIONS],
)


def shapes(model):
    return [leaf.shape for leaf in jax.tree.leaves(model)]


def test_every_option_keeps_company_and_none_in_it_hides_another():
    assert sorted(sum(COMPANIES, ())) == sorted(OPTIONS)
    for company in COMPANIES:
        fields = [name for option in company for name in OPTIONS[option]]
        assert len(fields) == len(set(fields)), company


@pytest.mark.equation("eq-decoder-model", "eq-encoder-model", "eq-encoder-mlm-head")
@pytest.mark.equation("eq-encoder-classifier", "eq-vision-model", "eq-seq2seq-model")
@every_option
def test_every_model_takes_every_option_and_agrees_with_a_loop_in_float64(kind, fields):
    model, inputs = new_model(kind, **fields), KINDS[kind].inputs
    logits, expected = model(*inputs), KINDS[kind].logits(*inputs, model)
    assert logits.shape == expected.shape
    assert np.isfinite(logits).all()
    assert_close(logits, expected)
    # From one seed all parameters are the same, unless the option changes their shapes.
    if shapes(model) == shapes(plain_model(kind)):
        assert np.abs(logits - plain_logits(kind)).max() > 3e-5 * np.abs(logits).max()


def rows_of(model):
    """How many rows go through the blocks."""
    return model.encoder.config.context_len + 1 if isinstance(model, pf.ViT) else SEQ


def logits_of(model, stream):
    """What a model makes of the last rows of its residual stream."""
    return model.stack.normalise(stream[-1]) if isinstance(model, pf.Encoder) else model.logits(stream[-1])


@all_kinds
def test_every_model_shows_its_attention_weights_and_its_residual_stream(kind):
    fields = {"norm_placement": "post", "position_scheme": "alibi", "num_kv_heads": 2}
    model, kind = new_model(kind, **fields), KINDS[kind]
    expected, rows = kind.inside(*kind.inputs, model), rows_of(model)
    weights = model.attention_weights(*kind.inputs)
    assert weights.shape == (LAYERS, HEADS, rows, rows)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    np.testing.assert_allclose(weights, expected.weights, atol=1e-5)
    stream = model.residual_stream(*kind.inputs)
    assert len(stream) == LAYERS + 1
    for found, of_loop in zip(stream, expected.stream, strict=True):
        assert found.shape == (rows, D_MODEL)
        assert_close(found, of_loop)
    assert_close(logits_of(model, stream), model(*kind.inputs))


@pytest.mark.equation("eq-decoder-model", "eq-encoder-model", "eq-vision-model", "eq-seq2seq-model")
@all_kinds
def test_every_model_takes_a_batch_of_any_rank_and_is_traced_once_for_each_shape(kind):
    model, other = plain_model(kind), plain_model(kind, 1)
    batch, traced = DRAWS.get(kind, lambda *shape: (texts(*shape),))(*BATCH), []

    @eqx.filter_jit
    def looks(model, inputs):
        traced.append(inputs)
        return model(*inputs), model.attention_weights(*inputs), model.residual_stream(*inputs)[1]

    logits, weights, rows = looks(model, batch)
    looks(other, tuple(each[::-1] for each in batch))
    assert len(traced) == 1
    assert weights.shape[:4] == (*BATCH, LAYERS, HEADS)
    for place in [(0, 1), (1, 2)]:
        alone = tuple(each[place] for each in batch)
        assert_close(logits[place], model(*alone))
        np.testing.assert_allclose(weights[place], model.attention_weights(*alone), atol=1e-5)
        assert_close(rows[place], model.residual_stream(*alone)[1])
    by_vmap = jax.jit(lambda *inputs: jax.vmap(model)(*inputs))(*(each[1] for each in batch))
    assert_close(logits[1], by_vmap)


@all_kinds
def test_every_model_takes_an_empty_batch_but_images(kind):
    model, batch = plain_model(kind), DRAWS.get(kind, lambda *shape: (texts(*shape),))(0)
    if kind == "vit":
        with pytest.raises(ValueError, match=r"There are 0 images; expected at least one"):
            model(*batch)
    else:
        assert model(*batch).shape == (0, *model(*KINDS[kind].inputs).shape)


@all_kinds
def test_every_model_drops_only_with_a_key(kind):
    model, sober, kind = new_model(kind, dropout_rate=0.5), plain_model(kind), KINDS[kind]
    plain, dropped = sober(*kind.inputs), model(*kind.inputs, key=key_of(1))
    np.testing.assert_array_equal(model(*kind.inputs), plain)
    np.testing.assert_array_equal(sober(*kind.inputs, key=key_of(1)), plain)
    np.testing.assert_array_equal(model(*kind.inputs, key=key_of(1)), dropped)
    assert np.abs(dropped - plain).max() > 0.1
    assert np.abs(dropped - model(*kind.inputs, key=key_of(2))).max() > 0.1
    assert np.abs(model.residual_stream(*kind.inputs, key=key_of(1))[0]).min() == 0  # what enters is dropped, too


@pytest.mark.gate
@all_kinds
def test_every_model_learns_by_a_step_down_its_slope(kind):
    """A small step against the slopes of all parameters lowers the loss by what the slopes say."""
    model, inputs = plain_model(kind), KINDS[kind].inputs

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(model):
        return jnp.mean(jnp.square(model(*inputs)))

    before, slopes = loss(model)
    steepness = sum(float(jnp.sum(slope**2)) for slope in jax.tree.leaves(slopes))
    step = 1e-4 * float(before) / steepness
    after, _ = loss(jax.tree.map(lambda leaf, slope: leaf if slope is None else leaf - step * slope, model, slopes))
    np.testing.assert_allclose(before - after, step * steepness, rtol=0.05)


@pytest.mark.gate
@all_kinds
def test_every_model_is_saved_and_loaded(kind, tmp_path):
    for fields in (
        {},
        OPTIONS["experts-shared"] | {"norm_placement": "post", "norm_eps": 0.01, "activation": "swiglu"},
    ):
        model = new_model(kind, **fields)
        pf.save_model(tmp_path / "it.safetensors", model)
        again = pf.load_model(tmp_path / "it.safetensors", KINDS[kind].model)
        assert again.config == model.config
        assert hash(again.config) == hash(model.config)
        assert jax.tree.structure(again) == jax.tree.structure(model)
        for found, expected in zip(jax.tree.leaves(again), jax.tree.leaves(model), strict=True):
            np.testing.assert_array_equal(found, expected)


@all_kinds
def test_no_two_leaves_of_a_model_are_one_array(kind):
    """Or a new model could not be donated: the same buffer would be given away twice."""
    for fields in ({}, OPTIONS["qk_norm"], OPTIONS["experts-shared"]):
        made = KINDS[kind].model(new_model(kind, **fields).config, key=key_of(0))
        leaves = [leaf for leaf in jax.tree.leaves(made) if eqx.is_array(leaf)]
        assert len({leaf.unsafe_buffer_pointer() for leaf in leaves}) == len(leaves)
