"""Measure what two stored decoders make of what they read, and write it with a card.

`make models` runs it, after the training. `record.json` holds the numbers.
"""

import itertools
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf

NEEDS = ("decoder", "things_decoder")
STRIDE, PASSAGE, NUM_WORDS, WORD = 32, 60, 100, 10
# In the line "word, word": letters 1 to 9 of the second word, each of which wants the one after it in the first.
READING = np.arange(WORD + 3, 2 * WORD + 2)
BACK = WORD + 1  # from such a letter to the one that it wants


@eqx.filter_jit
def surprise(model: pf.Decoder, texts):
    """At every letter of each text but the first, in nats."""
    log_probs = jax.nn.log_softmax(model(texts[:, :-1]))
    return -jnp.take_along_axis(log_probs, texts[:, 1:, None], axis=2)[..., 0]


def by_place(model: pf.Decoder, text: list[int], stride: int = STRIDE) -> np.ndarray:
    """The mean surprise behind 1, 2, … and all letters of a window, over windows that overlap."""
    length = model.config.context_len
    windows = jnp.asarray([text[start : start + length + 1] for start in range(0, len(text) - length, stride)])
    return np.concatenate([surprise(model, some) for some in jnp.array_split(windows, 16)]).mean(axis=0)


def passages(text: list[int]) -> np.ndarray:
    """Every tenth piece of sixty letters."""
    return np.array([text[start : start + PASSAGE] for start in range(0, len(text) - PASSAGE, 10 * PASSAGE)])


def first_and_second(model: pf.Decoder, pieces: np.ndarray) -> tuple[float, float]:
    """The mean surprise at letters 21 to 60 of pieces that are read twice: the first time, and the second."""
    nats = np.asarray(surprise(model, jnp.asarray(np.concatenate([pieces, pieces], axis=1)))).mean(axis=0)
    return nats[19 : PASSAGE - 1].mean(), nats[PASSAGE + 19 : 2 * PASSAGE - 1].mean()


def without(model: pf.Decoder, layer: int, head: int) -> pf.Decoder:
    """The model, but one head writes nothing."""
    width = model.config.stack.d_model // model.config.stack.num_heads

    def output(model):
        return model.stack.blocks[layer].attention.output.weight

    return eqx.tree_at(output, model, output(model).at[width * head : width * (head + 1)].set(0))


class Copying:
    """Lines of two words each, read by the decoder that copies."""

    def __init__(self, model: pf.Decoder, alphabet: pf.Vocabulary, num_words: int = NUM_WORDS):
        self.model, self.alphabet = model, alphabet
        self.rng = np.random.default_rng(1)
        self.words = ["".join(self.rng.choice(list("abcdefghijklmnopqrstuvwxyz"), WORD)) for _ in range(num_words)]

    def lines(self, seconds: list[str]):
        """The words with others behind them, as ids."""
        start, pairs = self.alphabet.special["<start>"], zip(self.words, seconds, strict=True)
        return jnp.asarray([[start, *self.alphabet.encode(f"{first}, {second}")] for first, second in pairs])

    def cost(self, model: pf.Decoder, seconds: list[str]) -> tuple[float, float]:
        """The mean surprise at all letters but the first, of the first word and of the second."""
        nats = np.asarray(surprise(model, self.lines(seconds)))
        return float(nats[:, 1:WORD].mean()), float(nats[:, WORD + 3 :].mean())

    def measure(self) -> dict:
        """What copying costs, which heads do it, and what it costs without each."""
        weights = np.asarray(eqx.filter_jit(self.model.attention_weights)(self.lines(self.words)[:, :-1]))
        copied = weights[..., READING, READING - BACK].mean(axis=(0, 3))
        before = weights[..., READING, READING - 1].mean(axis=(0, 3))
        copier, earlier = (tuple(map(int, np.unravel_index(w.argmax(), w.shape))) for w in (copied, before))
        first, again = self.cost(self.model, self.words)
        _, shuffled = self.cost(self.model, ["".join(self.rng.permutation(list(word))) for word in self.words])
        heads = itertools.product(*map(range, copied.shape))
        lost = {head: self.cost(without(self.model, *head), self.words)[1] for head in heads}
        costs = {"first": first, "again": again, "shuffled": shuffled}
        costs |= {"without_earlier": lost.pop(earlier), "without_copier": lost.pop(copier)}
        return {name: round(nats, 4) for name, nats in (costs | {"without_another": max(lost.values())}).items()} | {
            "earlier": earlier,
            "copier": copier,
            "weight_before": round(float(before[earlier]), 4),
            "weight_copied": round(float(copied[copier]), 4),
            "word": self.words[0],
            "weights": weights[0][copier].round(3).tolist(),
        }


def results() -> dict:
    """All numbers of the card."""
    (model, vocabulary), (copier, alphabet) = pf.load_pretrained("decoder"), pf.load_pretrained("things_decoder")
    validation = vocabulary.encode(pf.data.python_reference_splits()[1])
    pieces = passages(validation)
    first, second = first_and_second(model, pieces)
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "validation": len(validation),
        "by_place": [round(float(nats), 4) for nats in by_place(model, validation)],
        "twice": {"passages": len(pieces), "first": round(float(first), 4), "second": round(float(second), 4)},
        "copying": Copying(copier, alphabet).measure(),
    }


def facts(found: dict) -> dict[str, str]:
    """What chapters say: nats at all places, at those that see most, what letters farther back bring, and copying."""
    by_place, copying = found["by_place"], found["copying"]
    numbers = {name: each for name, each in copying.items() if isinstance(each, float)}
    return {
        "places.all": f"{np.mean(by_place):.2f}",
        "places.last": f"{np.mean(by_place[64:]):.2f}",
        "places.farther": f"{np.mean(by_place[16:32]) - np.mean(by_place[64:]):.2f}",
    } | {f"copying.{name}": f"{each:.1f}" for name, each in numbers.items()}


def card(found: dict) -> str:
    """What was measured."""
    twice, copying = found["twice"], found["copying"]
    earlier, copier = ([number + 1 for number in copying[name]] for name in ("earlier", "copier"))
    return f"""# What two decoders make of what they read

Measured of two stored models, `decoder` and `things_decoder`, by `lab/readings/run.py`, which `make models`
runs; the numbers stand in `record.json`.

- **By place.** `decoder`, on the {found["validation"]:,} characters held out of
  `plainformer.data.python_reference_splits()` of Python {found["python"]}: the mean surprise at each of the 128 places
  of windows that begin every {STRIDE} characters; {np.mean(found["by_place"]):.2f} nats over all places.
- **Twice.** `decoder`, on {twice["passages"]} passages of {PASSAGE} of these characters, each read twice in a row:
  {twice["first"]:.2f} nats per character from the 21st on, {twice["second"]:.2f} the second time.
- **Copying.** `things_decoder`, on {NUM_WORDS} words of {WORD} letters drawn at random, each read twice with a comma
  between: {copying["first"]:.2f} nats per letter but the first, {copying["again"]:.2f} the second time,
  {copying["shuffled"]:.2f} if its letters come again in another order. Head {earlier[1]} of block {earlier[0]} reads
  the letter before with a mean weight of {copying["weight_before"]:.2f}, head {copier[1]} of block {copier[0]} the
  letter to be copied with {copying["weight_copied"]:.2f}. Without what the first of them writes the second word costs
  {copying["without_earlier"]:.2f} nats, without the other {copying["without_copier"]:.2f}, without any other head
  {copying["without_another"]:.2f} at most.
- **Limits.** One seed of each model, one draw of words. On other versions of Python the text differs a little.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
