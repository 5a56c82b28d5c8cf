"""Answers to the exercises on the road to a whole transformer: a step, a draw, a mask, a stack, and the machine."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import scipy.stats
from exercise_checks import in_numpy, softmax

import plainformer as pf

CODE = """
def rms(x, scale):
    return scale * x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-5)

def split(x):
    return np.stack(np.split(x, 8, axis=1))

def attend(x, w):
    q, k, v = split(x @ w["query"]), split(x @ w["key"]), split(x @ w["value"])
    scores = q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5
    n = np.arange(len(x))
    slopes = np.array([2.0**-h for h in range(1, 9)])
    scores = scores - slopes[:, None, None] * np.abs(n[:, None] - n)
    scores = np.where(n[:, None] >= n, scores, -np.inf)
    weights = softmax(scores, axis=-1)
    found = np.concatenate(list(weights @ v), axis=1)
    return found @ w["output"]

def network(x, w):
    return gelu(x @ w["up"]) @ w["down"]

def block(x, w):
    y = x + attend(rms(x, w["attention_norm"]), w)
    return y + network(rms(y, w["feed_forward_norm"]), w)

def transformer(weights, ids):
    x = weights["table"][ids]
    for w in weights["blocks"]:
        x = block(x, w)
    x = rms(x, weights["final_norm"])
    return x @ weights["table"].T
"""


def gelu(z):
    return z * scipy.stats.norm.cdf(z)


def gelu_of_openai(z):
    return z / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))


def written(*changes: tuple[str, str]):
    """The reader's transformer with other lines in place of some."""
    code = CODE
    for right, wrong in changes:
        assert code.count(right) == 1, right
        code = code.replace(right, wrong)
    names = {"np": np, "scipy": scipy, "softmax": softmax, "gelu": gelu, "gelu_of_openai": gelu_of_openai}
    exec(code, names)
    return lambda *given: names["transformer"](*jax.tree.map(np.asarray, given))


ATTEND, NETWORK = 'x + attend(rms(x, w["attention_norm"]), w)', 'y + network(rms(y, w["feed_forward_norm"]), w)'
SKIPPED_ATTEND, SKIPPED_NETWORK = (
    ATTEND.replace("x + ", 'rms(x, w["attention_norm"]) + '),
    NETWORK.replace("y + ", 'rms(y, w["feed_forward_norm"]) + '),
)
TRANSFORMER = [
    ("no word is hidden", ("n[:, None] >= n, scores, -np.inf", "True, scores, 0.0")),
    ("mask is the wrong way round", ("n[:, None] >= n", "n[:, None] <= n")),
    ("each word from itself", ("n[:, None] >= n, scores, -np.inf", "n[:, None] > n, scores, -1e9")),
    ("one too far", ("n[:, None] >= n", "n[:, None] + 1 >= n")),
    ("hidden scores to zero", ("scores, -np.inf)", "scores, 0.0)")),
    ("where you should divide by its root", ("q.shape[-1] ** 0.5", "q.shape[-1]")),
    ("along the wrong axis", ("softmax(scores, axis=-1)", "softmax(scores, axis=1)")),
    ("not divided by the root", (" / q.shape[-1] ** 0.5", "")),
    ("root of the whole width", ("q.shape[-1] ** 0.5", "x.shape[-1] ** 0.5")),
    ("root of 8", ("q.shape[-1] ** 0.5", "8**0.5")),
    (
        "biases are divided",
        (" / q.shape[-1] ** 0.5", ""),
        ("np.abs(n[:, None] - n)", "np.abs(n[:, None] - n)\n    scores = scores / q.shape[-1] ** 0.5"),
    ),
    ("positions are forgotten", ("scores - slopes[:, None, None] * np.abs(n[:, None] - n)", "scores")),
    ("the wrong sign", ("scores - slopes", "scores + slopes")),
    ("slopes begin with 1", ("range(1, 9)", "range(8)")),
    ("mixed up when you split", ("np.stack(np.split(x, 8, axis=1))", "x.reshape(8, len(x), -1)")),
    ("every eighth column", ("np.stack(np.split(x, 8, axis=1))", "np.stack([x[:, h::8] for h in range(8)])")),
    ("mixed up when you merge", ("np.concatenate(list(weights @ v), axis=1)", "(weights @ v).reshape(x.shape)")),
    ("output matrix is forgotten", ('found @ w["output"]', "found")),
    ("attention replaces the rows", ("y = x + attend", "y = attend")),
    ("network replaces the rows", ("return y + network", "return network")),
    (
        "what entered the block",
        ('network(rms(y, w["feed_forward_norm"]), w)', 'network(rms(x, w["feed_forward_norm"]), w)'),
    ),
    ("attention reads the rows as they are", ('attend(rms(x, w["attention_norm"]), w)', "attend(x, w)")),
    ("network reads the rows as they are", ('network(rms(y, w["feed_forward_norm"]), w)', "network(y, w)")),
    (
        "that is post-norm",
        ('x + attend(rms(x, w["attention_norm"]), w)', 'rms(x + attend(x, w), w["attention_norm"])'),
        ('y + network(rms(y, w["feed_forward_norm"]), w)', 'rms(y + network(y, w), w["feed_forward_norm"])'),
    ),
    (
        "subtracts the mean",
        ("scale * x / np.sqrt(np.mean(x * x,", "scale * (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var("),
    ),
    ("bends by relu", ('gelu(x @ w["up"])', 'np.maximum(x @ w["up"], 0)')),
    ("does not bend", ('gelu(x @ w["up"])', 'x @ w["up"]')),
    ("bends by silu", ('gelu(x @ w["up"])', 'x @ w["up"] * scipy.special.expit(x @ w["up"])')),
    ("in both sublayers the skip", (ATTEND, SKIPPED_ATTEND), (NETWORK, SKIPPED_NETWORK)),
    ("around attention the skip", (ATTEND, SKIPPED_ATTEND)),
    ("around the network the skip", (NETWORK, SKIPPED_NETWORK)),
    ("two norms are swapped, or one", ('rms(y, w["feed_forward_norm"])', 'rms(y, w["attention_norm"])')),
    ("runs over the words", ("np.mean(x * x, -1,", "np.mean(x * x, 0,")),
    ("one block is left out", ('in weights["blocks"]', 'in weights["blocks"][:-1]')),
    ("or their logarithms", ('x @ weights["table"].T', 'np.log(softmax(x @ weights["table"].T))')),
    ("approximation by tanh", ('gelu(x @ w["up"])', 'gelu_of_openai(x @ w["up"])')),
    ("blocks come in the wrong order", ('in weights["blocks"]', 'in reversed(weights["blocks"])')),
    ("only one block is used", ('in weights["blocks"]', 'in weights["blocks"][:1]')),
    ("last norm is missing", ('x = rms(x, weights["final_norm"])', "")),
    ("you return probabilities", ('x @ weights["table"].T', 'softmax(x @ weights["table"].T)')),
    ("after the last word alone", ('x @ weights["table"].T', 'x[-1] @ weights["table"].T')),
]


def step_by_loss(loss):
    """A step down the gradient that JAX finds of a loss of matrix and ids."""
    return lambda weight, ids, rate: weight - rate * jax.grad(loss)(weight, ids)


def surprise(weight, given, following):
    return -jax.nn.log_softmax(weight[given])[jnp.arange(len(given)), following]


def mean_surprise(weight, ids):
    return surprise(weight, ids[:-1], ids[1:]).mean()


def up_the_gradient(weight, ids, rate):
    return weight + rate * jax.grad(mean_surprise)(weight, ids)


def last_use(weight, ids, rate):
    gradient = np.zeros_like(weight)
    gradient[ids[:-1]] = (softmax(weight[ids[:-1]]) - np.eye(len(weight))[ids[1:]]) / (len(ids) - 1)
    return weight - rate * gradient


def without_softmax(weight, ids, rate):
    gradient = np.zeros_like(weight)
    np.add.at(gradient, ids[:-1], weight[ids[:-1]] - np.eye(len(weight))[ids[1:]])
    return weight - rate * gradient / (len(ids) - 1)


TRAINING_STEP = [
    (step_by_loss(lambda w, ids: surprise(w, ids, ids).mean()), "nothing is shifted"),
    (step_by_loss(lambda w, ids: surprise(w, ids[1:], ids[:-1]).mean()), "shift the wrong way"),
    (step_by_loss(lambda w, ids: surprise(w, ids, jnp.roll(ids, -1)).mean()), "goes round"),
    (up_the_gradient, "go up the gradient"),
    (lambda w, ids, rate: w - jax.grad(mean_surprise)(w, ids), "learning rate plays no part"),
    (lambda w, ids, rate: jax.grad(mean_surprise)(w, ids), "the gradient alone"),
    (lambda w, ids, rate: -rate * jax.grad(mean_surprise)(w, ids), "the step, not the matrix"),
    (step_by_loss(lambda w, ids: mean_surprise(w, ids) / math.log(2)), "in bits"),
    (in_numpy(without_softmax), "softmax is missing"),
    (step_by_loss(lambda w, ids: surprise(w, ids[:-1], ids[1:]).sum()), "sum of the surprises"),
    (step_by_loss(lambda w, ids: surprise(w, ids[:-1], ids[1:]).sum() / len(ids)), "one question less"),
    (in_numpy(last_use), "last use alone"),
    (step_by_loss(lambda w, ids: surprise(w, ids[-2:-1], ids[-1:]).mean()), "only the last token"),
]


def along_the_line(logits, u):
    for token, probability in enumerate(softmax(logits)):
        u -= probability
        if u < 0:
            return token
    return len(logits) - 1


DRAW_TOKEN = [
    (lambda logits, u: logits.argmax(), "likeliest token"),
    (lambda logits, u: np.argmax(softmax(logits) > u), "by itself"),
    (lambda logits, u: np.argmax(np.cumsum(logits) > u), "logits themselves"),
    (lambda logits, u: np.argmax(np.cumsum(np.exp(logits - logits.max())) > u), "not divided by their sum"),
    (lambda logits, u: np.argmax(np.cumsum(np.exp(logits)) > u), "not divided by their sum"),
    (lambda logits, u: along_the_line(logits, u) + 1, "the token after"),
    (lambda logits, u: along_the_line(logits, u) - 1, "the token before"),
    (lambda logits, u: np.searchsorted(np.cumsum(sorted(softmax(logits), reverse=True)), u, "right"), "a rank"),
    (lambda logits, u: along_the_line(logits, 1 - u), "from the end of the line"),
    (lambda logits, u: np.argmax(np.cumsum(np.exp(logits) / np.exp(logits).sum()) > u), "overflow"),
]
CAUSAL_MASK = [
    (lambda seq: np.triu(np.ones((seq, seq), bool)), "the wrong way round"),
    (lambda seq: np.tri(seq, k=-1, dtype=bool), "may not see itself"),
    (lambda seq: np.tri(seq, k=1, dtype=bool), "one too far"),
    (lambda seq: np.triu(np.ones((seq, seq)), 1) == 1, "is inverted"),
    (lambda seq: np.ones((seq, seq), bool), "nothing is hidden"),
    (lambda seq: np.eye(seq, dtype=bool), "itself alone"),
]


def in_turn(x, blocks):
    return in_turn(blocks[0](x), blocks[1:]) if blocks else x


def only_the_last(x, blocks, norm):
    rows = x
    for block in blocks:
        rows = block(x)
    return norm(rows)


def returns_early(x, blocks, norm):
    for block in blocks:
        x = block(x)
        return norm(x)
    return norm(x)


def norm_in_the_loop(x, blocks, norm):
    for block in blocks:
        x = norm(block(x))
    return x


def doubled(x, blocks, norm):
    for block in blocks:
        x = x + block(x)
    return norm(x)


STACK = [
    (only_the_last, "what entered the stack"),
    (returns_early, "only the first block"),
    (lambda x, blocks, norm: norm(in_turn(x, blocks[::-1])), "in the wrong order"),
    (lambda x, blocks, norm: norm(in_turn(x, [blocks[0] for _ in blocks]) if blocks else x), "every time"),
    (doubled, "the skips are in the blocks"),
    (norm_in_the_loop, "after every block"),
    (lambda x, blocks, norm: norm(in_turn(x, [lambda rows, f=f: f(norm(rows)) for f in blocks])), "before every block"),
    (lambda x, blocks, norm: norm(norm(in_turn(x, blocks))), "twice at the end"),
    (lambda x, blocks, norm: in_turn(norm(x), blocks), "before the first block"),
    (lambda x, blocks, norm: in_turn(x, blocks), "at the end is missing"),
]
RIGHT = [
    ("transformer", written()),
    ("training_step", step_by_loss(mean_surprise)),
    ("training_step", step_by_loss(lambda w, ids: pf.cross_entropy(w[ids[:-1]], ids[1:]))),
    ("draw_token", in_numpy(along_the_line)),
    ("draw_token", lambda logits, u: jnp.searchsorted(jnp.cumsum(jax.nn.softmax(logits)), u, side="right")),
    ("causal_mask", lambda seq: jnp.tri(seq, dtype=bool)),
    ("causal_mask", pf.causal_mask),
    ("stack", lambda x, blocks, norm: norm(in_turn(x, blocks))),
]
WRONG = [
    *(("transformer", written(*changes), words) for words, *changes in TRANSFORMER),
    *(("training_step", function, words) for function, words in TRAINING_STEP),
    *(("draw_token", in_numpy(function), words) for function, words in DRAW_TOKEN),
    *(("causal_mask", function, words) for function, words in CAUSAL_MASK),
    *(("stack", function, words) for function, words in STACK),
]
