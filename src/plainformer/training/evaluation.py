"""How good a model is: its mean loss and its accuracy on whole data sets, BLEU and chrF of what it translated."""

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from plainformer.checks import Natural, Positive, check_each, checked, native
from plainformer.data.batches import consecutive_batches
from plainformer.data.named_batches import PaddedWindows, num_targets
from plainformer.data.windows import consecutive_windows
from plainformer.tokens.tokenizer import Tokenizer, encoder_of
from plainformer.training.losses import bits_from_nats, next_token_loss
from plainformer.training.sharding import Layout, mesh_of

Cut = Literal["13a", "intl", "char", "zh", "none"]


@checked
def mean_loss(model, loss_function: Callable, batches: Iterable, *, progress: bool = False) -> float:
    r"""Return the mean of a loss over all targets of all batches, however many each of them has.

    Batches weigh as much as targets of theirs count, by their `counts`; those without `counts`, as they have rows. One
    program is compiled for each shape that occurs, and kept for the next call with the same `loss_function`; one that
    is made anew each time is compiled anew, and the programs of the last eight are kept.

    Args:
        loss_function: any that `fit` takes and that is a mean over targets, such as `next_token_loss`,
            `masked_token_loss`, `classification_loss` or `translation_loss`. It gets no key, so that dropout is off.
        batches: such as `consecutive_batches` or `stream_windows` gives, or `map(batch_at, range(20))`.
        progress: whether to show a bar.

    Example:
        A model that finds four tokens equally likely does as well as one that guesses blindly among four.

        >>> model = lambda tokens, key: jnp.zeros((*tokens.shape, 4))
        >>> batches = [pf.data.Windows(jnp.asarray([[0, 1, 2]]), jnp.asarray([[1, 2, 3]]))]
        >>> loss = pf.training.mean_loss(model, pf.training.next_token_loss, batches)
        >>> round(pf.training.perplexity(loss), 3)
        4.0
    """
    return _mean(_measure(_loss_and_count, model, loss_function), batches, progress)


@checked
def accuracy(model: Callable, batches: Iterable, *, progress: bool = False) -> float:
    r"""Return the share of targets to which the model gives the largest of its logits.

    For classifiers of texts and images that is the share of labels found; for language models and masked ones, and for
    encoder–decoders, the share of tokens, each guessed from the right tokens before or around it. Arguments as for
    `mean_loss`; the batches are those of the losses named there, such as `pf.data.LabelledBatch`.

    Example:
        A model that expects the next number finds two of three targets.

        >>> model = lambda tokens: jax.nn.one_hot(tokens + 1, 4)
        >>> batches = [pf.data.Windows(jnp.asarray([[0, 1, 2]]), jnp.asarray([[1, 2, 0]]))]
        >>> round(pf.training.accuracy(model, batches), 3)
        0.667
    """
    return _mean(_measure(_share_and_count, model), batches, progress)


@checked
def corpus_loss(model, windows: tuple, *, batch_size: Positive = 64) -> float:
    r"""Return the mean cross-entropy of a language model on a whole text, in nats per token.

    For a text larger than memory: `mean_loss(model, next_token_loss, stream_windows(…))`.

    Args:
        model: from tokens to logits, such as a `Decoder`.
        windows: as `consecutive_windows` returns them.
        batch_size: how many of them to read at a time.
    """
    if not isinstance(windows, tuple | list) or len(windows) != 3:
        what = f"{len(windows)} arrays" if isinstance(windows, tuple | list) else f"a {type(windows).__name__}"
        raise TypeError(f"windows are {what}; expected inputs, targets, is_token: see consecutive_windows.")
    check_each(Positive, windows=len(windows[0]))
    return mean_loss(model, next_token_loss, consecutive_batches([PaddedWindows(*windows)], batch_size))


@checked
def bits_per_character(model, text: str, tokenizer: Tokenizer, *, allowed_special: Collection[str] = ()) -> float:
    r"""Return how many bits a character of a text costs a language model, which compares models whatever their tokens.

    Implements `eq-decoder-bits`. The text is read in windows of the model's `context_len`. All its characters count,
    but for those of its first token, which nobody guesses.

    Args:
        model: such as a `Decoder`.
        tokenizer: the one that the model was trained with.
        allowed_special: names of special tokens that stand for these tokens in the text, as for
            `BytePairEncoder.encode`, such as those between documents: they are guessed, and have no characters.

    Example:
        >>> model, tokenizer = pf.load_pretrained("decoder")
        >>> round(pf.training.bits_per_character(model, "The standard library", tokenizer), 1)
        0.5
    """
    ids = encoder_of(tokenizer, allowed_special)(text)
    nats = corpus_loss(model, consecutive_windows(ids, max(1, min(model.config.context_len, len(ids) - 1))))
    special = set(tokenizer.special.values())
    num_characters = len(tokenizer.decode([token for token in ids[1:] if token not in special]))
    return bits_from_nats(nats, len(ids) - 1, num_characters)


@checked
def corpus_bleu(texts: Sequence, references: Sequence, *, tokenize: Cut = "13a", lowercase: bool = False) -> float:
    r"""Return BLEU, 0 to 100: how many of the words, and of runs of up to four words, are those of the references.

    Papineni et al. (2002), computed by sacrebleu (Post, 2018) over all texts together. State `tokenize` with the
    number: other cuts give others.

    Args:
        texts: whole and as a reader would read them.
        references: for each text its reference, or a list of several.
        tokenize: how texts are cut into words.

    Example:
        All words are right, but few of the longer runs of words.

        >>> round(pf.training.corpus_bleu(["the mat sat on the cat"], ["the cat sat on the mat"]), 1)
        42.7
    """
    import sacrebleu

    streams = _reference_streams(texts, references)
    return sacrebleu.corpus_bleu(list(texts), streams, tokenize=tokenize, lowercase=lowercase).score


@checked
def corpus_chrf(texts: Sequence, references: Sequence, *, word_order: Natural = 0) -> float:
    r"""Return chrF, 0 to 100: how many of the runs of up to six characters are those of the references, and back.

    Popović (2015), computed by sacrebleu (Post, 2018) over all texts together; with `word_order=2`, chrF++. Arguments
    as for `corpus_bleu`.
    """
    import sacrebleu

    streams = _reference_streams(texts, references)
    return sacrebleu.corpus_chrf(list(texts), streams, word_order=word_order).score


def _measure(function: Callable, *parts) -> Callable:
    """The function of a batch, compiled, that a function of a model, what belongs to it, and a batch becomes."""
    arrays, rest = eqx.partition(parts, eqx.is_array)
    leaves, structure = jax.tree.flatten(rest)
    return functools.partial(_compiled(function, tuple(leaves), structure, mesh_of(arrays)), arrays)


@functools.lru_cache(maxsize=8)  # no more, or the programs of functions that are made anew at each call would pile up
def _compiled(function: Callable, leaves: tuple, structure, mesh: Mesh | None) -> Callable:
    rest = jax.tree.unflatten(structure, leaves)

    @Layout(mesh, None if mesh is None else {}).jit
    def measure(arrays, batch):
        return function(*eqx.combine(arrays, rest), batch)

    return measure


def _loss_and_count(model, loss_function: Callable, batch):
    loss = loss_function(model, batch, None)
    if shape := jnp.shape(loss):
        raise TypeError(f"The loss has shape {shape}; expected a single number, the mean over the targets.")
    return loss, num_targets(batch)


def _share_and_count(model, batch):
    if not all(hasattr(batch, name) for name in ("read", "targets", "counts")):
        expected = "expected one that says what is read, targets and counts, such as pf.data.LabelledBatch"
        raise TypeError(f"batch is a {type(batch).__name__}; {expected}(inputs, labels).")
    targets = jnp.asarray(batch.targets)
    if not jnp.issubdtype(targets.dtype, jnp.integer):
        raise TypeError(f"targets hold {targets.dtype}; expected whole numbers, of labels or of tokens.")
    logits = model(*batch.read)
    if logits.shape[:-1] != targets.shape:
        shapes = f"Logits have shape {logits.shape} and targets {targets.shape}"
        raise ValueError(f"{shapes}; expected one row of logits for each target.")
    count = num_targets(batch)
    hits = jnp.where(logits.argmax(axis=-1) == targets, jnp.asarray(batch.counts, count.dtype), 0).sum()
    return hits / jnp.where(count == 0, 1, count), count


def _mean(measure: Callable, batches: Iterable, progress: bool) -> float:
    """The mean of what is measured on each batch, a mean and over how many targets it is."""
    check_each(bool, progress=progress)
    total, count = 0.0, 0
    for batch in _each(batches, progress):
        mean, targets = (each.item() for each in map(np.asarray, measure(batch)))
        if targets:
            total += targets * mean
            count += targets
    if not count:
        raise ValueError(
            "No target counts; expected at least one. Are there no batches, is all of them padding, or was a "
            "generator read before? Such can be read once: make a list of it."
        )
    return total / count


def _each(batches: Iterable, progress: bool) -> Iterator:
    from tqdm import tqdm

    if callable(batches) or not isinstance(batches, Iterable) or getattr(batches, "shape", None) == ():
        raise TypeError(
            f"batches is of type {type(batches).__name__}; expected batches, such as consecutive_batches returns. "
            "Of a function from a step to a batch: map(batch_at, range(20))."
        )
    for batch in tqdm(batches, disable=not progress, unit="batch"):
        if not isinstance(batch, tuple | list):
            what = type(batch).__name__
            raise TypeError(f"batches holds a {what}; expected tuples of arrays. For a single batch, pass [batch].")
        yield jax.tree.map(native, batch)


def _reference_streams(texts: Sequence, references: Sequence) -> list[list]:
    """The first references of all texts, then the second ones, and so on, as sacrebleu takes them; `None` for none."""
    for name, given in (("texts", texts), ("references", references)):
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise TypeError(f"{name} is {given!r}; expected a list of strings.")
    if len(texts) != len(references) or not len(texts):
        raise ValueError(
            f"There are {len(texts)} texts and {len(references)} references; expected as many, and at least one. "
            "Several references of a text are a list in its place: [[one, another], …]."
        )
    lists = [[each] if isinstance(each, str) else each for each in references]
    for name, strings in (("texts", texts), *((f"references[{place}]", each) for place, each in enumerate(lists))):
        _check_strings(name, strings)
    most = max(map(len, lists))
    return [[each[number] if number < len(each) else None for each in lists] for number in range(most)]


def _check_strings(name: str, strings) -> None:
    if not isinstance(strings, Sequence) or not len(strings):
        raise TypeError(f"{name} is {strings!r}; expected a string, or a list of at least one.")
    for place, text in enumerate(strings):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{place}] is {text!r}; expected a string. Decode ids first: vocabulary.decode(…).")
