"""Captions and their translations, for the translators: Multi30k as tokens, training on it, and judging the result."""

import gzip
import json
import os
from collections import Counter
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import BUILD
from plainformer.data.parallel import ParallelSplits

KEPT = BUILD / "translator"
PARTS = ("train", "val", "test_2016_flickr")
SPECIAL = ("<start>", "<stop>")
VOCAB_SIZE, LENGTH, BATCH_SIZE, NUM_BUCKETS = 4000, 80, 128, 8
WARMUP_STEPS, LABEL_SMOOTHING = 1000, 0.1
SEEN = {"a German word never seen": (0, 0), "one seen 1 to 9 times": (1, 9), "all seen 10 times or more": (10, 10**9)}


def read_captions() -> ParallelSplits:
    """The captions, German first: from the folder that the environment names as MULTI30K, or downloaded once."""
    folder = os.environ.get("MULTI30K")
    if not folder:
        return pf.data.multi30k("de", "en")
    return ParallelSplits(*(_pairs(Path(folder), part) for part in PARTS))


def _pairs(folder: Path, part: str) -> list[tuple[str, str]]:
    """One part of the captions, from two packed files with a sentence per line."""
    paths = [folder / f"{part}.{language}.gz" for language in ("de", "en")]
    if missing := [str(path) for path in paths if not path.exists()]:
        raise FileNotFoundError(
            f"There is no {' and no '.join(missing)}; expected {', '.join(PARTS)} in the folder MULTI30K, each as "
            ".de.gz and .en.gz, one sentence per line."
        )
    german, english = (gzip.decompress(path.read_bytes()).decode("utf-8").strip().split("\n") for path in paths)
    return [(one.strip(), other.strip()) for one, other in zip(german, english, strict=True)]


class Captions:
    """The captions as tokens of one byte-pair encoding, learned from both languages of the training part."""

    def __init__(self, splits: ParallelSplits, vocab_size: int = VOCAB_SIZE):
        self.splits = splits
        lines = [line for side in zip(*splits.training, strict=True) for line in side]
        self.tokenizer = pf.BytePairEncoder.train("\n".join(lines), vocab_size, special=SPECIAL)
        self.start, self.stop = (self.tokenizer.special[name] for name in SPECIAL)

    @cached_property
    def buckets(self) -> dict[str, list[list]]:
        """The pairs to learn from and to judge by, as ids, those of about the same length together."""
        encode, parts = self.tokenizer.encode, ("training", "validation")
        pairs = {part: [(encode(one), encode(other)) for one, other in getattr(self.splits, part)] for part in parts}
        return {part: pf.data.length_buckets(each, NUM_BUCKETS) for part, each in pairs.items()}

    @property
    def steps_a_pass(self) -> int:
        """How many batches hold about as many pairs as there are to learn from."""
        return -(-len(self.splits.training) // BATCH_SIZE)

    def rarest(self, source: str) -> int:
        """How often the rarest word of a German sentence occurs in the training part."""
        return min(self._counts[word] for word in words(source))

    def unseen(self, source: str) -> list[str]:
        """The words of a German sentence that the training part does not have."""
        return [word for word in words(source) if not self._counts[word]]

    @cached_property
    def _counts(self) -> Counter:
        return Counter(word for german, _ in self.splits.training for word in words(german))


def words(text: str) -> list[str]:
    """The words of a sentence, in small letters, without what stands before and behind them."""
    return [word for each in text.lower().split() if (word := each.strip('.,;:!?"()'))]


def rate_at(step, learning_rate: float):
    """The rate of a step: it rises linearly, then falls with the root of the number of steps."""
    done = (step + 1) / WARMUP_STEPS
    return learning_rate * jnp.minimum(done, done**-0.5)


def fitted(name: str, model, loss: Callable, captions: Captions, arrays: dict, num_passes: int, learning_rate: float):
    """Train a model, judge and keep it once a pass; `loss` takes `label_smoothing`, too."""
    every = captions.steps_a_pass
    training = pf.TrainingConfig(
        num_steps=num_passes * every,
        learning_rate=learning_rate,
        warmup_steps=WARMUP_STEPS,
        beta_2=0.98,
        evaluate_every=every,
        checkpoint_every=every,
        max_to_keep=100,
    )
    held_out = pf.data.consecutive_batches(arrays["validation"], BATCH_SIZE)
    with jax.threefry_partitionable(False):  # else dropout takes as long as all the rest
        return pf.fit(
            model,
            partial(loss, label_smoothing=LABEL_SMOOTHING),
            pf.data.random_batches(arrays["training"], BATCH_SIZE),
            training,
            schedule=partial(rate_at, learning_rate=learning_rate),
            evaluate=lambda model: pf.training.mean_loss(model, loss, held_out),
            directory=KEPT / name,
            progress=False,
        )


def averaged(name: str, model, captions: Captions, last: int, num: int):
    """A model whose weights are the means of those after the passes up to the `last`, `num` of them."""
    places = jax.tree.leaves(jax.tree.map(lambda leaf: np.zeros(leaf.shape), model))
    like = (model, pf.training.make_optimiser(pf.TrainingConfig(num_steps=2, warmup_steps=1)).init(model))
    for done in range(last - num + 1, last + 1):
        (saved, _), *_ = pf.training.load_checkpoint(KEPT / name, like, step=done * captions.steps_a_pass)
        places = [mean + leaf / num for mean, leaf in zip(places, jax.tree.leaves(saved), strict=True)]
    leaves = [jnp.asarray(mean, leaf.dtype) for mean, leaf in zip(places, jax.tree.leaves(model), strict=True)]
    return jax.tree.unflatten(jax.tree.structure(model), leaves)


def minutes(name: str, captions: Captions, num_passes: int) -> float:
    """How long the passes took, from the times at which they were kept."""
    first, last = (
        (KEPT / name / f"{done * captions.steps_a_pass:06d}.safetensors").stat().st_mtime for done in (1, num_passes)
    )
    return round((last - first) / (num_passes - 1) * num_passes / 60, 1)


def kept(name: str, measure: Callable[[], object]):
    """What was measured under this name, or is measured and kept now."""
    path = KEPT / f"{name}.json"
    if not path.exists():
        path.write_text(json.dumps(measure(), ensure_ascii=False), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def judged(texts: list[str], references: list[str]) -> dict[str, float]:
    """BLEU of translations, with capitals kept and without, each to a hundredth."""
    bleu = pf.training.corpus_bleu
    return {
        "cased": round(bleu(texts, references), 2),
        "lower case": round(bleu(texts, references, lowercase=True), 2),
    }


def by_rarity(texts: list[str], captions: Captions) -> dict[str, list]:
    """Where the rarest German word is new, rare or known: how many sentences, their BLEU, German words in each."""
    found: dict[str, list] = {}
    for name, (least, most) in SEEN.items():
        chosen = [
            (text, english, len(german.split()))
            for text, (german, english) in zip(texts, captions.splits.test, strict=True)
            if least <= captions.rarest(german) <= most
        ]
        if chosen:
            written, wanted, lengths = map(list, zip(*chosen, strict=True))
            found[name] = [len(chosen), judged(written, wanted)["cased"], round(sum(lengths) / len(lengths), 1)]
    return found


def words_of(ids: list[int], tokenizer: pf.BytePairEncoder) -> tuple[list[str], np.ndarray]:
    """The words of a text, and for each token the number of its word: a word begins with a space."""
    numbers = np.cumsum([tokenizer.decode([each]).startswith(" ") for each in ids])
    return tokenizer.decode(ids).split(" "), numbers


def between_words(weights: np.ndarray, source: list[int], target: list[int], tokenizer: pf.BytePairEncoder) -> dict:
    """How much each word that was written read from each word of the source, by the weights of one block.

    The weights are those of all heads, (heads, target, source), whose mean is taken; a word reads what its tokens read
    on average, summed over the tokens of the word that is read.
    """
    read, source_word = words_of(source, tokenizer)
    written, target_word = words_of(target, tokenizer)
    weights = weights.mean(axis=0)[: len(target_word)]  # the row that reads token n writes token n + 1
    summed = np.stack([weights[:, source_word == n].sum(axis=-1) for n in range(len(read))], axis=-1)
    means = np.stack([summed[target_word == n].mean(axis=0) for n in range(len(written))])
    return {"source": read, "target": written, "weights": means.astype(float).round(3).tolist()}
