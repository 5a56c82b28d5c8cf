"""What no model may lose on the way to its parts: random keys, rates, and fields of configurations.

Each test holds for every model of the package: one that is not in `KINDS` yet fails the first of them.
"""

import dataclasses
import functools
import importlib
import inspect
import pkgutil
from collections import Counter
from typing import NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from all_models import D_MODEL, KINDS, LAYERS, STACK, new_model, plain_model

import plainformer as pf
from plainformer.models.config import make_scheme
from plainformer.models.depth import Stack
from plainformer.positions.schemes import SchemeName

KEY, OTHER_KEY = jax.random.key(1), jax.random.key(2)
all_kinds = pytest.mark.parametrize("kind", KINDS)


def package():
    """Every module of the package but the exercises."""
    found = pkgutil.walk_packages(pf.__path__, "plainformer.")
    return [importlib.import_module(module.name) for module in found if ".exercises" not in module.name]


WITHOUT_DROPOUT = {"window_loss", "preference_loss"}


def has_blocks(model) -> bool:
    """Whether a class has a stack of blocks, itself or in a part; the others drop nothing, and have their own tests."""
    parts = [part for field in dataclasses.fields(model) for part in (field.type, *get_args(field.type))]
    inside = [part for part in parts if inspect.isclass(part) and issubclass(part, eqx.Module)]
    return Stack in inside or any(map(has_blocks, inside))


def test_every_model_of_the_package_is_among_those_that_the_tests_take():
    classes = {each for module in package() for each in vars(module).values() if inspect.isclass(each)}
    modules = [each for each in classes if issubclass(each, eqx.Module)]
    models = [each for each in modules if "config" in {field.name for field in dataclasses.fields(each)}]
    within = {type(part) for kind in KINDS for part in vars(plain_model(kind)).values()}  # as in ViT
    models = [each for each in models if not inspect.isabstract(each)]
    missing = set(filter(has_blocks, models)) - {kind.model for kind in KINDS.values()} - within
    assert not missing, (
        f"put {sorted(map(str, missing))} into KINDS of tests/helpers/all_models.py: no test over all models has it"
    )


# --- configurations: what they hold, and with what in its place ------------------------------------------------


def fields_of(config, path=()):
    """The path of every field of a configuration, and of those of configurations within."""
    for field in dataclasses.fields(config):
        value, place = getattr(config, field.name), (*path, field.name)
        yield from fields_of(value, place) if dataclasses.is_dataclass(value) else [place]


def part_of(config, path):
    for name in path:
        config = getattr(config, name)
    return config


def replaced(config, path, **fields):
    """The configuration with other fields in the one within that a path leads to."""
    if not path:
        return dataclasses.replace(config, **fields)
    name, *rest = path
    return dataclasses.replace(config, **{name: replaced(getattr(config, name), rest, **fields)})


def stacks_in(config) -> list[tuple]:
    """The paths of all configurations of stacks, in the order in which a model holds its stacks."""
    within = dict.fromkeys(path[:-1] for path in fields_of(config))
    return [path for path in within if isinstance(part_of(config, path), pf.StackConfig)]


def parts(model, kind: type) -> list:
    """All parts of a kind, in the order in which a model holds them."""
    leaves = jax.tree.leaves(model, is_leaf=lambda part: isinstance(part, kind))
    return [part for part in leaves if isinstance(part, kind)]


def plain_config(kind, **fields):
    return KINDS[kind].config(**STACK | KINDS[kind].fields | fields)


def each_with_its_own(kind, **lists):
    """A configuration in which the first stack has the first value of each field, and so on; with the stacks' own."""
    config = plain_config(kind)
    for number, path in enumerate(stacks_in(config)):
        config = replaced(config, path, **{name: values[number] for name, values in lists.items()})
    return config, [part_of(config, path) for path in stacks_in(config)]


FULL = {"use_class_token": True, "embedding_norm": True, "pooler": True, "num_segments": 3, "source_vocab_size": 13}


def fullest_config(kind, **fields):
    """A configuration with all parts that a model may have, and some fields of its stacks."""
    config = plain_config(kind)
    for path in list(fields_of(config)):
        if path[-1] in FULL:
            config = replaced(config, path[:-1], **{path[-1]: FULL[path[-1]]})
    for path in stacks_in(config):
        config = replaced(config, path, **fields)
    return replaced(config, (), tied_embedding=False) if hasattr(config, "tied_embedding") else config


OTHER = {  # for every field but those of a stack another value, which a model of `KINDS` may have
    "vocab_size": 13,
    "context_len": 10,
    "tied_embedding": False,
    "d_in": 5,
    "num_segments": 3,
    "use_class_token": True,
    "embedding_norm": True,
    "embedding_width": 6,
    "output_bias": True,
    "pooler": True,
    "num_classes": 5,
    "pooling": "mean",
    "source_len": 8,
    "source_vocab_size": 13,
    "start_token": 8,
    "image_size": (12, 8),
    "patch_size": (3, 4),
    "channels": 1,
}
NEEDS = {"d_in": {"vocab_size": None, "d_in": 4}, "output_bias": {"tied_embedding": False}}  # what acts in company only
FOR_OTHERS = {
    "stop_token": "translate ends a text there",
    ("masked", "d_in"): "it guesses words",
    ("encoder", "d_in"): "RowEncoder reads rows",
}
OF_A_STACK = {field.name for field in dataclasses.fields(pf.StackConfig)}


@functools.cache
def shapes_of(kind, config):
    model = eqx.filter_eval_shape(KINDS[kind].model, config, key=KEY)
    return {name: leaf.shape for name, leaf in named(model).items()}


def named(model) -> dict:
    leaves = jax.tree_util.tree_leaves_with_path(model)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def own_fields(kind):
    """The paths of the fields of a model's configuration that are not of a stack."""
    paths = fields_of(plain_config(kind))
    return [
        path for path in paths if path[-1] not in OF_A_STACK and not {path[-1], (kind, path[-1])} & FOR_OTHERS.keys()
    ]


@all_kinds
def test_every_field_of_every_configuration_acts(kind):
    expected = new_model(kind)(*KINDS[kind].inputs)
    for path in own_fields(kind):
        name, (*within, _) = path[-1], path
        where = f"{'.'.join(path)} of a {kind}"
        assert name in OTHER, f"{where} is new: write another value for it into OTHER"
        one = replaced(plain_config(kind), within, **NEEDS.get(name, {}))
        other = replaced(one, within, **{name: OTHER[name]})
        if shapes_of(kind, one) != shapes_of(kind, other):
            continue
        found = new_model(kind, config=other)
        if name == "start_token":
            with pytest.raises(ValueError, match="expected the start token, 8"):
                found(*KINDS[kind].inputs)
        else:
            change = np.abs(found(*KINDS[kind].inputs) - expected).max()
            assert change > 1e-3 * np.abs(expected).max(), f"{where} changes neither a shape nor what it returns"


UNUSUAL = {
    "d_ff": [7, 11],
    "num_layers": [3, 1],
    "num_heads": [4, 3],
    "num_kv_heads": [2, 1],
    "d_k": [8, 16],
    "d_v": [5, 7],
    "attention": ["direct", "blockwise"],
    "norm": ["rms", "layer"],
    "norm_eps": [0.25, 0.5],
    "norm_placement": ["sandwich", "post"],
    "parallel": [False, False],  # which does not go with all others: tests/models/test_models.py
    "qk_norm": [True, True],  # a block without one: tests/models/test_models.py
    "qk_norm_over": ["head", "row"],
    "sinks": [False, True],
    "activation": ["relu", "silu"],
    "experts": [
        pf.blocks.ExpertsConfig(
            **{"num_experts": 6, "per_token": 2, "width": 9, "shared": 1, "moved_bias": True},
            **{"groups": 3, "chosen_groups": 1},
        ),
        None,
    ],
    "position_scheme": ["relative", "rotary"],
    "rope_theta": [5.0, 7.0],
    "rotary_fraction": [0.5, 0.75],
    "rope_scaling": [None, pf.positions.YarnScaling(factor=3.0, trained_len=16)],  # which rotary positions only take
    "num_buckets": [8, 16],
    "max_distance": [20, 30],
    "window": [2, 3],
    "pattern": [("window", "full"), ("full", "window", "window")],
    "latent": [None, None],  # which does not go with all others: tests/models/test_models.py
    "dropout_rate": [0.25, 0.375],
    "use_bias": [False, True],
}


def test_every_field_of_a_stack_has_unusual_values():
    names = {field.name for field in dataclasses.fields(pf.StackConfig)} - {"d_model"}
    assert not (missing := names - UNUSUAL.keys()), f"write two values of {sorted(missing)} into UNUSUAL"


@all_kinds
@pytest.mark.parametrize("order", [1, -1])
def test_every_block_of_every_model_is_made_of_its_stacks_own_configuration(kind, order):
    config, of_stacks = each_with_its_own(kind, **{name: values[::order] for name, values in UNUSUAL.items()})
    model = eqx.filter_eval_shape(KINDS[kind].model, config, key=KEY)
    for stack, sizes in zip(parts(model, Stack), of_stacks, strict=True):
        assert len(stack.blocks) == sizes.num_layers
        assert (stack.dropout_rate, stack.window, stack.kinds) == (sizes.dropout_rate, sizes.window, sizes.kinds)
        for number, block in enumerate(stack.blocks):
            reads = hasattr(block, "cross_attention")
            options = {"kind": stack.kinds[number], "cross_attention": reads}
            expected = eqx.filter_eval_shape(pf.make_block, sizes, **options, key=KEY)
            assert eqx.tree_equal(block, expected), f"block {number} of a {kind} is not what make_block makes"
        schemes = [eqx.filter_eval_shape(make_scheme, sizes, 9, causal=causal, key=KEY) for causal in (True, False)]
        alike = any(eqx.tree_equal(stack.scheme, scheme) for scheme in schemes)  # which of them, a test below says
        assert alike, f"{stack.scheme} of a {kind} is not what make_scheme makes of {sizes}"
        norm = None if sizes.norm_placement == "post" else expected.attention_norm
        assert eqx.tree_equal(stack.final_norm, norm), f"the norm at the end of a {kind} is not that of its blocks"


@all_kinds
def test_every_norm_and_every_bias_of_every_model_is_that_of_the_configuration(kind):
    for norm, part in (("layer", pf.LayerNorm), ("rms", pf.RMSNorm)):
        config = fullest_config(kind, norm=norm, norm_eps=0.25, use_bias=False)
        model = eqx.filter_eval_shape(KINDS[kind].model, config, key=KEY)
        norms = parts(model, part)
        vectors = [name for name, array in named(model).items() if array.ndim == 1]
        others = [name for name in vectors if not name.endswith(("scale", "class_token"))]
        assert not others, f"a {kind} with use_bias=False has {others}"
        assert {each.eps for each in norms} == {0.25}, f"some norm of a {kind} has another eps than the configuration"
        scales = sum(name.endswith("scale") for name in vectors)
        assert len(norms) == scales, f"some norms of a {kind} are of another kind than {norm!r}"


# --- dropout ----------------------------------------------------------------------------------------------------


class Drop(NamedTuple):
    """One call of dropout: at which rate, by which key."""

    rate: float
    key: tuple


@pytest.fixture
def drops(monkeypatch):
    """A function that calls another one and returns what was dropped meanwhile."""
    noted, bernoulli = [], jax.random.bernoulli

    def noting(key, p, shape):
        noted.append(Drop(round(1 - p, 6), tuple(jax.random.key_data(key).tolist())))
        return bernoulli(key, p, shape)

    monkeypatch.setattr(jax.random, "bernoulli", noting)

    def of(function, *inputs, key=None):
        noted.clear()
        function(*inputs, key=key)
        return list(noted)

    return of


# What drops something besides its stacks: a classifier, the vector of each text.
FURTHER = {("classifier", "__call__"): 1}


@all_kinds
def test_every_model_drops_what_enters_a_stack_and_what_leaves_each_sublayer(kind, drops):
    config, of_stacks = each_with_its_own(kind, dropout_rate=[0.25, 0.375], num_layers=[3, 2])
    model = new_model(kind, config=config)
    for name in ("__call__", "residual_stream"):
        expected = Counter({of_stacks[0].dropout_rate: FURTHER.get((kind, name), 0)})
        for stack, sizes in zip(parts(model, Stack), of_stacks, strict=True):
            sublayers = [2 + hasattr(block, "cross_attention") for block in stack.blocks]
            expected[sizes.dropout_rate] += 1 + sum(sublayers)
        found = drops(getattr(model, name), *KINDS[kind].inputs, key=KEY)
        rates = Counter(drop.rate for drop in found)
        assert rates == expected, f"{kind}.{name} drops (rate: how often) {rates}; expected {expected}"
        assert drops(getattr(model, name), *KINDS[kind].inputs) == []


@all_kinds
def test_every_model_drops_each_time_by_a_key_of_its_own(kind, drops):
    model, inputs = new_model(kind, num_layers=3, dropout_rate=0.25), KINDS[kind].inputs
    one, other = (drops(model, *inputs, key=key) for key in (KEY, OTHER_KEY))
    places = {}
    for number, drop in enumerate(one):
        places.setdefault(drop.key, []).append(number)
    alike = [numbers for numbers in places.values() if len(numbers) > 1]
    assert not alike, f"of the {len(one)} times that a {kind} drops, in order, these use one key: {alike}"
    assert not {drop.key for drop in one} & {drop.key for drop in other}, (
        f"a {kind} drops by a key that it was not given"
    )


@all_kinds
def test_no_model_that_drops_uses_a_key_twice(kind):
    """Also not once to drop and once to make further keys of it."""
    model = new_model(kind, dropout_rate=0.25)
    with jax.debug_key_reuse(True):  # raises at the line that uses a key for the second time
        model(*KINDS[kind].inputs, key=jax.random.key(1))


def losses():
    """Every function of the package from a model, a batch and a random key."""
    functions = [each for module in package() for each in vars(module).values() if inspect.isfunction(each)]
    return {each.__name__: each for each in functions if [*inspect.signature(each).parameters][:3] == ARGUMENTS}


ARGUMENTS = ["model", "batch", "key"]
IDS, IS_TOKEN = jnp.zeros((2, 3), int), jnp.ones((2, 3), bool)
BATCHES = {
    "next_token_loss": pf.data.Windows(IDS, IDS),
    "masked_token_loss": pf.data.MaskedBatch(IDS, IDS, IS_TOKEN),
    "classification_loss": pf.data.LabelledBatch(IDS, jnp.zeros(2, int)),
    "translation_loss": pf.data.TranslationBatch(IDS, IS_TOKEN, IDS, IDS, IS_TOKEN),
}


def test_every_loss_hands_its_key_to_the_model():
    found = losses()
    assert found.keys() - WITHOUT_DROPOUT == BATCHES.keys(), "write a batch for each loss into BATCHES"
    for name in BATCHES:
        loss = found[name]
        keys, shape = [], (2, 5) if name == "classification_loss" else (2, 3, 5)

        def model(*inputs, key, keys=keys, shape=shape):
            keys.append(key)
            return jnp.zeros(shape)

        loss(model, BATCHES[name], KEY)
        assert keys == [KEY], f"{name} calls the model with key={keys}, and was given another"


# --- keys that a new model is drawn by --------------------------------------------------------------------------


@all_kinds
def test_every_model_draws_each_of_its_arrays_by_the_key_and_no_two_by_one(kind):
    config = fullest_config(kind, d_ff=D_MODEL, position_scheme="relative", activation="swiglu")
    with jax.debug_key_reuse(True):  # raises at the line that uses a key for the second time
        models = [KINDS[kind].model(config, key=jax.random.key(seed)) for seed in (1, 2)]
    one, other = ({name: np.asarray(array) for name, array in named(model).items()} for model in models)
    constant = [name for name, array in one.items() if (array == array.ravel()[0]).all()]
    assert all(one[name].ndim == 1 for name in constant), f"of a {kind}, all numbers are the same in some of {constant}"
    drawn = one.keys() - set(constant)
    assert len(drawn) >= 6 * LAYERS
    fixed = sorted(name for name in drawn if (one[name] == other[name]).mean() > 0.01)
    assert not fixed, f"of a {kind}, {fixed} do not depend on the key"


# --- positions --------------------------------------------------------------------------------------------------


@pytest.fixture
def masks(monkeypatch):
    """A function that calls a model and returns each of its stacks with the mask that it was given."""
    noted, run = [], Stack.__call__

    def noting(self, x, mask=None, **options):
        noted.append((self, mask))
        return run(self, x, mask, **options)

    monkeypatch.setattr(Stack, "__call__", noting)
    return lambda model, *inputs: (noted.clear(), model(*inputs), list(noted))[-1]


def adds_to_scores(name: str) -> bool:
    scheme = eqx.filter_eval_shape(
        make_scheme, pf.StackConfig(position_scheme=name), 9, causal=True, grid=(2, 2), key=KEY
    )
    return type(scheme).bias is not pf.PositionScheme.bias


@all_kinds
@pytest.mark.parametrize("name", [name for name in get_args(SchemeName) if adds_to_scores(name)])
def test_every_stack_has_positions_for_the_order_in_which_it_reads(kind, name, masks):
    """All that a scheme has learned of distances is used, and one that looks both ways tells before from after."""
    found = masks(new_model(kind, position_scheme=name), *KINDS[kind].inputs)
    assert len(found) == len(stacks_in(plain_config(kind)))
    places = jnp.arange(200)
    for stack, mask in found:
        is_causal = mask is not None and mask.causal
        allowed = jnp.tri(200) if is_causal else jnp.ones((200, 200))
        learned, scheme = eqx.partition(stack.scheme, eqx.is_inexact_array)

        def total(learned, scheme=scheme, allowed=allowed):
            return (allowed * eqx.combine(learned, scheme).bias(places, places)).sum()

        for rows in jax.tree.leaves(jax.grad(total)(learned)):
            unused = int((rows == 0).all(axis=-1).sum())
            # Of those for keys that come after the query, the one for a distance of 0 stands for nothing.
            message = f"a stack of a {kind} never reads {unused} of the {len(rows)} rows of {type(scheme).__name__}"
            assert unused <= (not is_causal), message
            bias = np.asarray(stack.scheme.bias(places, places))
            near, far, before = bias[:, 3, 4], bias[:, 3, 6], bias[:, 3, 0]
            seen = len(np.unique([near, far, before], axis=0)) == 3
            assert is_causal or seen, f"a {kind} cannot tell how far a token lies ahead, or ahead from behind"
