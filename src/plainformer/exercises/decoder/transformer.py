"""Exercise `transformer`: the whole machine of the stories, from ids to logits.

The right steps are float64 NumPy and share no line with the package's layers.
"""

import math
from types import SimpleNamespace

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake

HEADS = 8
_ERF = np.vectorize(math.erf, otypes=[float])


def _softmax(scores, axis=-1):
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def _rms(x, scale):
    return scale * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)


def _alibi(seq, slopes):
    distances = np.abs(np.arange(seq)[:, None] - np.arange(seq))
    return -slopes[:, None, None] * distances


def _slopes(first=1):
    return 2.0 ** (-8 * np.arange(first, first + HEADS) / HEADS)


STEPS = {
    "biases": lambda seq: _alibi(seq, _slopes()),
    "seen": lambda seq: np.tri(seq, dtype=bool),
    "hide": lambda scores, seen: np.where(seen, scores, -np.inf),
    "scale": lambda n: n.d_k**-0.5,
    "join": lambda products, scale, biases: products * scale + biases,
    "weigh": _softmax,
    "split": lambda rows: rows.reshape(len(rows), HEADS, -1).swapaxes(0, 1),
    "merge": lambda heads: heads.swapaxes(0, 1).reshape(heads.shape[1], -1),
    "mix": lambda rows, w: rows @ w["output"],
    "norm": _rms,
    "norms": lambda w: (w["attention_norm"], w["feed_forward_norm"]),
    "bend": lambda z: z * (1 + _ERF(z / math.sqrt(2))) / 2,
    "first": lambda x, f: x + f.attention(f.attention_norm(x)),
    "second": lambda x, y, f: y + f.network(f.feed_forward_norm(y)),
    "order": lambda blocks: blocks,
    "finish": lambda x, weights, norm: norm(x, weights["final_norm"]),
    "say": lambda logits: logits,
}


def transformer(weights, ids, **steps):
    """Return the logits of what comes after each word."""
    do = SimpleNamespace(**(STEPS | steps))
    x = weights["table"][ids]
    for w in do.order(weights["blocks"]):
        x = _block(x, w, do)
    return do.say(do.finish(x, weights, do.norm) @ weights["table"].T)


def _block(x, w, do):
    """The rows after one block."""
    first, second = do.norms(w)
    f = SimpleNamespace(
        attention=lambda rows: _attention(rows, w, do),
        network=lambda rows: do.bend(rows @ w["up"]) @ w["down"],
        attention_norm=lambda rows: do.norm(rows, first),
        feed_forward_norm=lambda rows: do.norm(rows, second),
    )
    return do.second(x, do.first(x, f), f)


def _attention(rows, w, do):
    """What all heads find, mixed."""
    queries, keys, values = (do.split(rows @ w[name]) for name in ("query", "key", "value"))
    sizes = SimpleNamespace(d_k=queries.shape[-1], d_model=rows.shape[-1])
    scores = do.join(queries @ keys.swapaxes(1, 2), do.scale(sizes), do.biases(len(rows)))
    weights = do.weigh(do.hide(scores, do.seen(len(rows))))
    return do.mix(do.merge(weights @ values), w)


ATTENTION = [
    Mistake(
        "no word is hidden: each looks at words that come after it",
        "Row n is asked for word n + 1. May it have read this word?",
        seen=lambda seq: np.ones((seq, seq), bool),
    ),
    Mistake(
        "your mask is the wrong way round: each word sees itself and those that come after it",
        "Row n is asked for word n + 1. Which of the others has it read?",
        seen=lambda seq: np.tri(seq, dtype=bool).T,
    ),
    Mistake(
        "your mask hides each word from itself, and the first sees nothing",
        "Has a row read its own word?",
        seen=lambda seq: np.tri(seq, k=-1, dtype=bool),
        hide=lambda scores, seen: np.where(seen, scores, -1e9),  # with -inf nothing is a number
    ),
    Mistake(
        "each word sees one too far: the very word that it is asked for",
        "Row n is asked for word n + 1. May it read this word?",
        seen=lambda seq: np.tri(seq, k=1, dtype=bool),
    ),
    Mistake(
        "you set the hidden scores to zero, so hidden words still get a weight",
        "exp(0) is 1. Which score has the exponential 0?",
        hide=lambda scores, seen: np.where(seen, scores, 0),
    ),
    Mistake(
        "your softmax runs along the wrong axis: over the words that look, not over those looked at",
        "Each row of the weights has a budget of one. Along which axis do they sum to one?",
        weigh=lambda scores: _softmax(scores, axis=-2),
    ),
    Mistake(
        "the scores are not divided by the root of d_k",
        "How does the variance of a dot product grow with the length of the two vectors?",
        scale=lambda n: 1.0,
    ),
    Mistake(
        "you divide the scores by the root of the whole width, not by that of one head",
        "How long are the two vectors whose dot product one head takes?",
        scale=lambda n: n.d_model**-0.5,
    ),
    Mistake(
        "you divide the scores by d_k, where you should divide by its root",
        "By how much does the size of a dot product grow with the length of the two vectors?",
        scale=lambda n: 1 / n.d_k,
    ),
    Mistake(
        "you divide the scores by the root of 8, however wide a head is",
        "The narrower machines have eight heads as well. How wide is one of them?",
        scale=lambda n: 8**-0.5,
    ),
    Mistake(
        "your biases are divided by the root of d_k, together with the scores",
        "By which factor is a bias too small if it stands inside the bracket?",
        join=lambda products, scale, biases: (products + biases) * scale,
    ),
    Mistake(
        "positions are forgotten: nothing is added to the scores",
        "What tells your machine which of two sentences came first?",
        biases=lambda seq: np.zeros((HEADS, seq, seq)),
    ),
    Mistake(
        "your biases have the wrong sign: the farther a word, the more it counts",
        "Should a score fall or rise with the distance?",
        biases=lambda seq: -_alibi(seq, _slopes()),
    ),
    Mistake(
        "your slopes begin with 1, where the first should be a half",
        "With eight heads the slopes are 1/2, 1/4, and so on. From which number does h count?",
        biases=lambda seq: _alibi(seq, _slopes(first=0)),
    ),
]
HEAD_MISTAKES = [
    Mistake(
        "your heads are mixed up when you split: a reshape alone cuts across words",
        "A head is a group of columns. Which axis must be split, and which then come first?",
        split=lambda rows: rows.reshape(HEADS, len(rows), -1),
    ),
    Mistake(
        "each of your heads takes every eighth column, where it should take columns that lie side by side",
        "Columns 0 to d_k - 1 are the first head's. In which order does reshape read a row?",
        split=lambda rows: rows.reshape(len(rows), -1, HEADS).transpose(2, 0, 1),
    ),
    Mistake(
        "your heads are mixed up when you merge: a reshape alone cuts across words",
        "In memory the heads come first. Which axes must change places, before two can become one?",
        merge=lambda heads: heads.reshape(heads.shape[1], -1),
    ),
    Mistake(
        "the output matrix is forgotten: what the heads found is not mixed",
        "Which of the four matrices of attention have you not used?",
        mix=lambda rows, w: rows,
    ),
]
BLOCK = [
    Mistake(
        "attention replaces the rows, where its result should be added to them",
        "What becomes of a row's own word?",
        first=lambda x, f: f.attention(f.attention_norm(x)),
    ),
    Mistake(
        "the network replaces the rows, where its result should be added to them",
        "What becomes of what attention found?",
        second=lambda x, y, f: f.network(f.feed_forward_norm(y)),
    ),
    Mistake(
        "your network reads what entered the block, not what attention has changed",
        "When the network's turn comes, attention has spoken. Through which variable does it hear?",
        second=lambda x, y, f: y + f.network(f.feed_forward_norm(x)),
    ),
    Mistake(
        "attention reads the rows as they are: the norm before it is missing",
        "Which scale of the block have you not used?",
        first=lambda x, f: x + f.attention(x),
    ),
    Mistake(
        "the network reads the rows as they are: the norm before it is missing",
        "Which scale of the block have you not used?",
        second=lambda x, y, f: y + f.network(y),
    ),
    Mistake(
        "you normalise the sums: that is post-norm",
        "If both sublayers return zeros, x should pass the block unchanged. Does it pass yours?",
        first=lambda x, f: f.attention_norm(x + f.attention(x)),
        second=lambda x, y, f: f.feed_forward_norm(y + f.network(y)),
    ),
    Mistake(
        "in both sublayers the skip carries the normalised rows",
        "If both sublayers return zeros, x should pass the block unchanged. Does it pass yours?",
        first=lambda x, f: f.attention_norm(x) + f.attention(f.attention_norm(x)),
        second=lambda x, y, f: f.feed_forward_norm(y) + f.network(f.feed_forward_norm(y)),
    ),
    Mistake(
        "around attention the skip carries the normalised rows",
        "If attention returns zeros, x should pass unchanged. Does it pass yours?",
        first=lambda x, f: f.attention_norm(x) + f.attention(f.attention_norm(x)),
    ),
    Mistake(
        "around the network the skip carries the normalised rows",
        "If the network returns zeros, its rows should pass unchanged. Do they pass yours?",
        second=lambda x, y, f: f.feed_forward_norm(y) + f.network(f.feed_forward_norm(y)),
    ),
    Mistake(
        "the scales of the two norms are swapped, or one is used twice",
        "Which sublayer does attention_norm prepare the rows for?",
        norms=[
            lambda w: (w["feed_forward_norm"], w["attention_norm"]),
            lambda w: (w["attention_norm"], w["attention_norm"]),
            lambda w: (w["feed_forward_norm"], w["feed_forward_norm"]),
        ],
    ),
    Mistake(
        "your norm runs over the words, where each word should be normalised by itself",
        "Along which axis lie the numbers of one word?",
        norm=lambda x, scale: scale * x / np.sqrt((x**2).mean(axis=0, keepdims=True) + 1e-5),
    ),
    Mistake(
        "your norm subtracts the mean, as layer normalisation does; these norms are RMSNorms",
        "By what is a row divided in an RMSNorm, and is anything subtracted?",
        norm=lambda x, scale: _rms(x - x.mean(axis=-1, keepdims=True), scale),
    ),
    Mistake(
        "your network bends by relu, and the machine was trained with gelu",
        "What does the bend make of -1/2?",
        bend=lambda z: np.maximum(z, 0),
    ),
    Mistake(
        "your network does not bend: two matrices in a row are one",
        "What stands between the two maps?",
        bend=lambda z: z,
    ),
    Mistake(
        "your network bends by silu, and the machine was trained with gelu",
        "By which probability does gelu multiply z?",
        bend=lambda z: z / (1 + np.exp(-z)),
    ),
    Mistake(
        "your gelu is the approximation by tanh; jax.nn.gelu takes approximate=False",
        "Which of the two forms was the machine trained with?",
        bend=lambda z: z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))) / 2,
    ),
]
WHOLE = [
    Mistake(
        "your blocks come in the wrong order, the last one first",
        "Which block do the rows of the table enter?",
        order=lambda blocks: blocks[::-1],
    ),
    Mistake(
        "only one block is used",
        "Does your loop give each block what the block before it has made?",
        order=[lambda blocks: blocks[:1], lambda blocks: blocks[-1:], lambda blocks: blocks[:1] * len(blocks)],
    ),
    Mistake(
        "one block is left out",
        "How often does your loop turn, and over which list?",
        order=[lambda blocks: blocks[:-1], lambda blocks: blocks[1:]],
    ),
    Mistake(
        "the last norm is missing",
        "What happens between the last block and the product with the table?",
        finish=lambda x, weights, norm: x,
    ),
    Mistake(
        "you return probabilities or their logarithms, where logits are asked for",
        "Which function makes probabilities of logits, and who calls it?",
        say=[_softmax, lambda logits: np.log(_softmax(logits))],
    ),
    Mistake(
        "you return what comes after the last word alone",
        "How many questions does a text of N words ask at once?",
        say=lambda logits: logits[-1],
    ),
]

_RNG = np.random.default_rng(2022)


def _array(*shape):
    return (_RNG.normal(size=shape) / 2).round(1)


def _drawn(vocab_size, d_model, d_ff, num_blocks):
    """Weights of this size, a dictionary as the chapter has it."""
    square = ("query", "key", "value", "output")
    blocks = [
        {name: _array(d_model, d_model) for name in square}
        | {"up": _array(d_model, d_ff), "down": _array(d_ff, d_model)}
        | {name: 1 + _array(d_model) for name in ("attention_norm", "feed_forward_norm")}
        for _ in range(num_blocks)
    ]
    return {"table": _array(vocab_size, d_model), "blocks": blocks, "final_norm": 1 + _array(d_model)}


def _case(name, vocab_size, d_model, d_ff, num_blocks, ids, is_edge=False):
    weights = _drawn(vocab_size, d_model, d_ff, num_blocks)
    return Case(name, {"weights": weights, "ids": np.array(ids)}, is_edge)


def _of_stories():
    """The stored machine on a story, where the package is whole; the pages of the site have the exercises alone."""
    try:
        from plainformer.data import load_weights
        from plainformer.data.little_world import WORLD_WORDS
    except ImportError:
        return []
    stored = {name[10:]: array for name, array in load_weights("machines").items() if name.startswith("decoder.0.")}
    names = {name: f"attention.{name}.weight" for name in ("query", "key", "value", "output")}
    names |= {name: f"feed_forward.{name}.weight" for name in ("up", "down")}
    names |= {name: f"{name}.scale" for name in ("attention_norm", "feed_forward_norm")}
    blocks = [{mine: stored[f"stack.blocks.{n}.{its}"] for mine, its in names.items()} for n in range(4)]
    weights = {"table": stored["embedding.weight"], "blocks": blocks, "final_norm": stored["stack.final_norm.scale"]}
    story = ". Anna is in the hall . Ben is in the cellar . where is Anna ?"
    ids = np.array([WORLD_WORDS.index(word) for word in story.split()])
    return [Case("the stored machine on a story", {"weights": weights, "ids": ids})]


EXERCISE = Exercise(
    transformer,
    [*ATTENTION, *HEAD_MISTAKES, *BLOCK, *WHOLE],
    cases=[
        _case("two blocks of width 16", 7, 16, 5, 2, [3, 0, 6, 3, 1]),
        _case("three blocks of width 24", 5, 24, 9, 3, [0, 4, 2, 2, 1, 3, 4]),
        *_of_stories(),
        _case("a single word", 4, 8, 6, 2, [2], is_edge=True),
    ],
    examples=[{"weights": _drawn(3, 16, 12, 2), "ids": np.array([0, 2, 1])}],
    result="(seq, vocab_size)",
    tried_on="texts of {ids[0]} and more words",
)
