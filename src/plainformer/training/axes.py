"""Names of axes: what each axis of each array of a model stands for, such as `"vocab"` or `"heads"`."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from plainformer.checks import axes_of

INTO_HEADS, OUT_OF_HEADS = {"d_in": "d_model", "d_out": "heads"}, {"d_in": "heads", "d_out": "d_model"}
INTO_KV_HEADS = {"d_in": "d_model", "d_out": "kv_heads"}
WIDER, NARROWER = {"d_in": "d_model", "d_out": "d_ff"}, {"d_in": "d_ff", "d_out": "d_model"}
TO_VOCAB, TO_CLASSES = {"d_in": "d_model", "d_out": "vocab"}, {"d_in": "d_model", "d_out": "num_classes"}
WITH_STATE = dict.fromkeys(("query", "key", "value", "factor", "gate", "beta"), INTO_HEADS)
WITH_STATE |= {"output": OUT_OF_HEADS, "norm": {"d_model": "d_v"}}
# What the general names of a part's axes stand for, by the class that the part belongs to and the name of its field.
MEANINGS: dict[str, dict[str, dict[str, str]]] = {
    "MultiHeadAttention": {
        "query": INTO_HEADS,
        "key": INTO_KV_HEADS,
        "value": INTO_KV_HEADS,
        "output": OUT_OF_HEADS,
        "query_norm": {"d_model": "d_k"},
        "key_norm": {"d_model": "d_k"},
    },
    "AcrossHeads": {"norm": {"d_model": "row"}},
    "LatentAttention": {
        "query_down": {"d_in": "d_model", "d_out": "d_query"},
        "query": {"d_in": "d_query", "d_out": "heads"},
        "down": {"d_in": "d_model", "d_out": "d_latent"},
        "rotary_key": {"d_in": "d_model", "d_out": "d_rotary"},
        "key": {"d_in": "d_latent", "d_out": "heads"},
        "value": {"d_in": "d_latent", "d_out": "heads"},
        "output": OUT_OF_HEADS,
        "query_norm": {"d_model": "d_query"},
        "latent_norm": {"d_model": "d_latent"},
    },
    "GatedLinearAttention": WITH_STATE,
    "GatedDeltaNet": WITH_STATE,
    "FeedForward": {"up": WIDER, "down": NARROWER},
    "SwiGLU": {"gate": WIDER, "up": WIDER, "down": NARROWER},
    "Experts": {"router": {"d_in": "d_model", "d_out": "experts"}},
    "RowEncoder": {"embedding": {"d_out": "d_model"}, "segment_embedding": {"vocab_size": "num_segments"}},
    "Encoder": {
        "embedding_map": {"d_in": "embedding_width", "d_out": "d_model"},
        "segment_embedding": {"vocab_size": "num_segments"},
    },
    "MaskedLanguageModel": {"head": {"d_in": "d_model", "d_out": "d_model"}},
    "Decoder": {"output": TO_VOCAB},
    "Seq2Seq": {"output": TO_VOCAB},
    "EncoderClassifier": {"pooler": {"d_in": "d_model", "d_out": "d_model"}, "output": TO_CLASSES},
    "ViT": {"output": TO_CLASSES},
}
# The axis that arrays of these parts have in front of their own, since several stand in one.
IN_FRONT = {"Experts": {"networks": ("experts",)}}


def axis_names(tree):
    r"""Return a tree with a tuple of names of axes in place of each array, such as `("vocab", "d_model")`.

    They are those of the annotation of the field that holds the array; in a `Linear`, whose own names are general, the
    place in the model says what they stand for. An axis without a name is `None`.

    Args:
        tree: a model, shapes in its place, or what an optimiser remembers of it.

    Example:
        >>> layer = pf.FeedForward(8, 12, key=jax.random.key(0))
        >>> pf.training.axis_names(layer).up.weight
        ('d_model', 'd_ff')
    """
    return map_arrays(names_of_axes, tree)


def map_arrays(function: Callable, node, place: tuple = ()):
    """The tree with what a function makes of each array and of its place, the parts that it lies in."""
    if isinstance(node, jax.Array | np.ndarray | jax.ShapeDtypeStruct):
        return function(node, place)
    structure: Any
    parts, structure = jax.tree_util.tree_flatten_with_path(node, is_leaf=lambda part: part is not node)
    if [path for path, _ in parts] == [()]:  # no array, and nothing that holds any
        return node
    return structure.unflatten(map_arrays(function, part, (*place, (node, *path))) for path, part in parts)


def names_of_axes(array, place: tuple) -> tuple:
    """The names of an array's axes, from the field that holds it; those of a general part, from where that stands."""
    module, field = (*place[-1], None)[:2] if place else (None, None)
    names: Any = axes_of(type(module), getattr(field, "name", None))
    for module, field in reversed(place):
        names = (*_known(IN_FRONT, module, field, ()), *names)
    if len(names) != array.ndim:
        return (None,) * array.ndim
    for module, field in reversed(place):
        meaning = _known(MEANINGS, module, field, {})
        if "kv_heads" in meaning.values() and module.num_kv_heads == module.num_heads:
            meaning = INTO_HEADS
        if "d_query" in meaning.values() and not jax.tree.leaves(module.query_down):  # made of the token itself
            meaning = INTO_HEADS
        names = tuple(meaning.get(name, name) for name in names)
    return tuple(name.removesuffix("_size") for name in names)


def _known(table: dict, module, field, otherwise):
    """What a table says of a field of a module, by the name of its class, or of one that it extends."""
    name = getattr(field, "name", None)
    classes = [kind.__name__ for kind in type(module).__mro__]
    return next((table[each][name] for each in classes if name in table.get(each, {})), otherwise)


def all_names(tree) -> set[str]:
    """All names that the axes of a tree's arrays have."""
    found: set[str] = set()
    map_arrays(lambda array, place: found.update(name for name in names_of_axes(array, place) if name), tree)
    return found


def num_parts(name: str | None, size: int, place: tuple) -> int:
    """Into how many parts an axis may be cut: heads stay whole, however many columns each has."""
    counts = [count for module, _ in reversed(place) if isinstance(count := getattr(module, f"num_{name}", None), int)]
    return counts[0] if counts and size % counts[0] == 0 else size
