"""Many token-wise networks, of which a router chooses a few for each token (chapter on modern models)."""

import dataclasses
import math
from collections.abc import Callable
from typing import Annotated, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.blocks.layers import FeedForward, SwiGLU
from plainformer.checks import Natural, Number, Positive, PositiveFloat, check_each, check_fields, checked, says_where
from plainformer.seeing import named, see, unseen
from plainformer.tokens.tokens import Linear

Capacity = Annotated[
    float, Number(lambda x: 1 <= x < math.inf, "at least 1, with which equal loads just fit, such as 1.25")
]
Chosen = Integer[Array, "*batch seq per_token"]


@says_where
@dataclasses.dataclass(frozen=True, kw_only=True)
class ExpertsConfig:
    r"""How many networks a block has, how wide each is, and how a router chooses among them.

    Mixtral (Jiang et al., 2024) has 8, of which 2 work on a token. Switch (Fedus et al., 2021) has one at work, with
    `renormalise=False`. DeepSeek-V3 (2024) has 256 and one shared, of which 8 work, with `scores="sigmoid"`,
    `moved_bias=True`, `scale=2.5`, `dense_layers=3`, `groups=8` and `chosen_groups=4`.

    Args:
        num_experts: among how many networks a router chooses.
        per_token: how many it chooses for each token.
        width: inner width of each of them.
        shared: how many more work on every token; they are made as one network of so many times the width.
        scores: `"softmax"` lets the experts of a token compete, `"sigmoid"` scores each by itself.
        renormalise: whether the gates of the chosen experts are divided by their sum.
        scale: what gates are multiplied by in the end.
        moved_bias: whether a bias is added to scores for the choice alone, which `pf.training.move_bias`
            moves in training.
        capacity: how many times an equal share of a text's choices an expert takes; what comes after is dropped. A
            token's result then depends on how many others are read with it, so that reading token by token differs
            from reading all at once, and so does a prompt that is padded, as those of `generate` are. `None` for no
            limit.
        dense_layers: how many of the first blocks keep one network for all tokens, of the width `d_ff`.
        groups, chosen_groups: into how many groups the experts fall, such as those on one machine, and from how many of
            them a token's experts come, those whose two best scores sum to most; `None` for all.

    Raises:
        ValueError: if one is out of range, or the router could not learn.
    """

    num_experts: Positive
    per_token: Positive
    width: Positive
    shared: Natural = 0
    scores: Literal["softmax", "sigmoid"] = "softmax"
    renormalise: bool = True
    scale: PositiveFloat = 1.0
    moved_bias: bool = False
    capacity: Capacity | None = None
    dense_layers: Natural = 0
    groups: Positive = 1
    chosen_groups: Positive | None = None

    def __post_init__(self):
        check_fields(self)
        check_per_token(self.per_token, self.num_experts)
        check_chosen_groups(self.per_token, self.num_experts, self.groups, self.chosen_groups)
        if self.per_token == 1 and self.renormalise:
            raise ValueError(
                "per_token is 1 with renormalise=True, so that every gate is 1 and the router learns nothing; expected "
                "renormalise=False."
            )


def check_per_token(per_token: int, num_experts: int) -> None:
    """Raise `ValueError` if more experts shall work on a token than there are."""
    if per_token > num_experts:
        raise ValueError(f"per_token is {per_token}; expected at most num_experts={num_experts}.")


def check_chosen_groups(per_token: int, num_experts: int, groups: int, chosen_groups: int | None) -> None:
    """Raise `ValueError` unless groups of equal size have as many experts as work on a token."""
    if num_experts % groups:
        raise ValueError(f"groups is {groups}; expected a divisor of num_experts={num_experts}.")
    if chosen_groups is not None and not per_token * groups <= chosen_groups * num_experts <= num_experts * groups:
        least = -(-per_token * groups // num_experts)
        raise ValueError(f"chosen_groups is {chosen_groups}; expected {least} to groups={groups}, or None for all.")


@checked
def route(
    weights: Float[Array, "*batch seq experts"],
    per_token: Positive,
    *,
    choice_bias: Float[Array, " experts"] | Float[Array, "*batch seq experts"] | None = None,
    renormalise: bool = True,
) -> tuple[Float[Array, "*batch seq per_token"], Chosen]:
    r"""Choose experts for each token, and say how much each of them counts.

    Implements `eq-modern-gates`; Shazeer et al. (2017), equations 3 and 5, without the noise; with a bias DeepSeek-AI
    (2024), equation 16.

    Args:
        weights: what a softmax or a sigmoid made of the router's scores.
        per_token: how many to choose.
        choice_bias: added to `weights` for the choice, and not for the gates.
        renormalise: whether the gates of a token are divided by their sum.

    Returns:
        The gates, and the number of the expert that each belongs to, the one with the largest weight first.

    Raises:
        ValueError: if there are fewer experts.

    Example:
        Two of three experts are chosen; their gates sum to 1.

        >>> gates, chosen = pf.blocks.route(jnp.asarray([[0.2, 0.5, 0.3]]), 2)
        >>> print(gates, chosen)
        [[0.625 0.375]] [[1 2]]
    """
    check_per_token(per_token, weights.shape[-1])
    choice = weights if choice_bias is None else weights + choice_bias
    chosen = jax.lax.top_k(jax.lax.stop_gradient(choice), per_token)[1]
    gates = jnp.take_along_axis(weights, chosen, axis=-1)
    return (gates / gates.sum(axis=-1, keepdims=True) if renormalise else gates), chosen


def in_best_groups(
    choice: Float[Array, "*batch experts"], groups: int, chosen_groups: int
) -> Bool[Array, "*batch experts"]:
    """Say of each expert whether its group is one of the best, each by the sum of its two largest numbers.

    DeepSeek-AI (2024), section 2.1.2, as in the released code.
    """
    by_group = choice.reshape(*choice.shape[:-1], groups, -1)
    of_group = jax.lax.top_k(by_group, min(2, by_group.shape[-1]))[0].sum(axis=-1)
    best = jax.nn.one_hot(jax.lax.top_k(of_group, chosen_groups)[1], groups, dtype=bool).any(axis=-2)
    return jnp.repeat(best, by_group.shape[-1], axis=-1)


@checked
def within_capacity(chosen: Chosen, num_experts: Positive, capacity: Capacity) -> Bool[Array, "*batch seq per_token"]:
    r"""Say of each choice whether its expert has room for it, first come, first served, in each text by itself.

    Implements `eq-modern-capacity`; Fedus et al. (2021), equation 3. Of one token's choices the first comes first.

    Example:
        Of three tokens and two experts, with room for two tokens each, the third that wants expert 0 finds no place.

        >>> print(pf.blocks.within_capacity(jnp.asarray([[0], [0], [0]]), 2, 1.0).ravel())
        [ True  True False]
    """
    *batch, seq, per_token = chosen.shape
    room = math.ceil(capacity * seq * per_token / num_experts)
    wants = jax.nn.one_hot(chosen.reshape(*batch, seq * per_token), num_experts, dtype=jnp.int32)
    place = (wants * jnp.cumsum(wants, axis=-2)).sum(axis=-1)  # counted from 1 within each expert
    return (place <= room).reshape(chosen.shape)


@checked
def mixture(
    x: Float[Array, "*batch seq d_model"],
    gates: Float[Array, "*batch seq per_token"],
    chosen: Chosen,
    networks: Callable,
    kept: Bool[Array, "*batch seq per_token"] | None = None,
) -> Float[Array, "*batch seq d_model"]:
    r"""Add up what the chosen networks make of each token, each times its gate.

    Implements `eq-modern-experts`; Shazeer et al. (2017), equation 1.

    Only the chosen networks work: the tokens of each expert are put into blocks of equal length, one expert to a block,
    and a few rows of the last block of each are empty. `jax.lax.ragged_dot` would need no blocks; on processors it
    computes all experts for all tokens.

    Args:
        networks: one network whose arrays have an axis of experts in front, as `jax.vmap` makes them.
        kept: `False` where an expert has no room; its gate then counts for nothing. `None` for all.
    """
    num_experts = jax.tree.leaves(networks)[0].shape[0]
    kept = jnp.ones(chosen.shape, bool) if kept is None else kept
    experts = jnp.where(kept, chosen, num_experts).ravel()  # a number beyond the last stands for none
    places, expert_of_block, length = _into_blocks(experts, num_experts)
    rows = jnp.repeat(x.reshape(-1, x.shape[-1]), chosen.shape[-1], axis=0)
    blocks = jnp.zeros((expert_of_block.size * length, x.shape[-1]), x.dtype).at[places].set(rows, mode="drop")
    of_blocks = jax.tree.map(lambda array: array[expert_of_block], networks)
    apply = unseen(jax.vmap(lambda network, block: network(block)))
    made = apply(of_blocks, blocks.reshape(-1, length, x.shape[-1])).reshape(blocks.shape)
    outputs = made.at[places].get(mode="fill", fill_value=0).reshape(*chosen.shape, x.shape[-1])
    return (gates[..., None] * outputs).sum(axis=-2)


def _into_blocks(experts: Integer[Array, " rows"], num_experts: int) -> tuple[Array, Array, int]:
    """Return the place of each row among the blocks, beyond them all for no expert; the expert of each; their length.

    With four blocks for an equal share, at most a fifth of all rows is empty; a few tokens get blocks of one row.
    """
    length = max(1, experts.size // (4 * num_experts))
    num_blocks = (experts.size + num_experts * (length - 1)) // length
    counts = jnp.bincount(experts, length=num_experts)
    needed = -(-counts // length)
    ends, firsts = jnp.cumsum(needed), jnp.cumsum(counts) - counts
    order = jnp.argsort(experts, stable=True)
    of_row = experts[order]
    place = length * (ends - needed)[of_row] + jnp.arange(experts.size) - firsts[of_row]
    place = jnp.where(of_row < num_experts, place, num_blocks * length)
    expert_of_block = jnp.searchsorted(ends, jnp.arange(num_blocks), side="right")
    return jnp.zeros_like(place).at[order].set(place), jnp.minimum(expert_of_block, num_experts - 1), length


class Experts(eqx.Module):
    r"""A token-wise network that is many: a router chooses a few of them for each token.

    Implements `eq-modern-shared`, which is `eq-modern-experts` with what the shared experts add; Dai et al. (2024),
    equations 9 to 11.

    Args:
        d_model: width of a token.
        config: how many networks, and how a router chooses.
        make_network: from an inner width and a random key to one network.
        use_bias: whether the router's map has a bias, which is learned like any other.
    """

    router: Linear
    choice_bias: Float[Array, " experts"] | None
    networks: FeedForward | SwiGLU
    shared: FeedForward | SwiGLU | None
    config: ExpertsConfig = eqx.field(static=True)

    @checked
    def __init__(
        self,
        d_model: Positive,
        config: ExpertsConfig,
        make_network: Callable,
        *,
        use_bias: bool = False,
        key: PRNGKeyArray,
    ):
        router_key, shared_key, *keys = jax.random.split(key, 2 + config.num_experts)
        self.router = Linear(d_model, config.num_experts, use_bias=use_bias, key=router_key)
        self.choice_bias = jnp.zeros(config.num_experts) if config.moved_bias else None
        self.networks = jax.vmap(lambda key: make_network(config.width, key=key))(jnp.stack(keys))
        self.shared = make_network(config.shared * config.width, key=shared_key) if config.shared else None
        self.config = config

    @checked
    def __call__(self, x: Float[Array, "*batch d_model"]) -> Float[Array, "*batch d_model"]:
        """Apply the chosen networks, and the shared one, to each row of `x`."""
        rows = x[None] if x.ndim == 1 else x
        gates, chosen = self.choose(rows)
        kept = None
        if self.config.capacity is not None:
            kept = see("kept", within_capacity(chosen, self.config.num_experts, self.config.capacity))
        routed = mixture(rows, gates, chosen, self.networks, kept).reshape(x.shape)
        return routed if self.shared is None else routed + named("shared", self.shared)(x)

    @checked
    def choose(self, x: Float[Array, "*batch seq d_model"]) -> tuple[Float[Array, "*batch seq per_token"], Chosen]:
        """Return the gates of the experts of each token, and which these are."""
        scores = named("router", self.router)(x)
        softmax = self.config.scores == "softmax"
        weights = see("expert_weights", jax.nn.softmax(scores, axis=-1) if softmax else jax.nn.sigmoid(scores))
        bias = self.choice_bias if self.choice_bias is None else see("choice_bias", self.choice_bias)
        if self.config.chosen_groups is not None:
            bias = jnp.zeros(self.config.num_experts, weights.dtype) if bias is None else bias
            allowed = in_best_groups(weights + bias, self.config.groups, self.config.chosen_groups)
            bias = jnp.where(allowed, bias, -jnp.inf)
        gates, chosen = route(weights, self.config.per_token, choice_bias=bias, renormalise=self.config.renormalise)
        return self.config.scale * gates, see("chosen", chosen)

    def __check_init__(self):
        check_each(Callable, networks=self.networks)
