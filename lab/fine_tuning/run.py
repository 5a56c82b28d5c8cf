"""Fine-tune the stored encoder to tell languages, and write how it compares, with a card.

No weights are kept: the accuracies are the result. `record.json` holds them, with what one of the models answers.
"""

import itertools
from collections.abc import Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import plainformer as pf
from lab.encoder.run import ENCODER, encode
from lab.fine_tuning import frozen
from lab.records import ends
from plainformer.data.names import LabelledName

NEEDS = ("encoder",)
LENGTH, BATCH_SIZE, SEEDS, LONGER = 20, 40, (0, 1, 2), 5
NUM_STEPS = {5: 300, 20: 400, 100: 1000}  # by the number of labelled names of each language
RATES = {"pre-trained": {5: 1e-3, 20: 3e-3, 100: 3e-3}, "from scratch": {5: 1e-2, 20: 1e-3, 100: 1e-2}}
EXAMPLES = ("cy", "fi", "hu", "nl", "pl", "sv")  # languages whose letter groups the chapter shows


class Names:
    """Texts as ids, and their languages by number."""

    def __init__(self, names: list[LabelledName], languages: list[str]):
        self.texts = [name.text for name in names]
        self.labels = np.array([languages.index(name.language) for name in names])
        self.ids, self.is_token = encode(self.texts, LENGTH)


def labelled(names: Names, num_labels: int, seed: int) -> np.ndarray:
    """As many names of each language, as rows of the names to learn from."""
    rng = np.random.default_rng(seed)
    each = [np.flatnonzero(names.labels == language) for language in range(names.labels.max() + 1)]
    return np.concatenate([rng.permutation(rows)[:num_labels] for rows in each])


def batches_of(rows: np.ndarray, seed: int):
    """Again and again all labelled names, in another order each time, cut into batches."""
    rng, length = np.random.default_rng(seed), BATCH_SIZE * LONGER * max(NUM_STEPS.values())
    order = np.concatenate([rng.permutation(rows) for _ in range(-(-length // len(rows)))])
    return jnp.asarray(order[:length].reshape(-1, BATCH_SIZE))


@eqx.filter_jit
def tuned(model, data, batches, num_steps, learning_rate):
    """Like `fit`, but without dropout and weight decay: one loop, compiled once for all numbers of steps and rates."""
    weights, rest = eqx.partition(model, eqx.is_inexact_array)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(b2=0.99))
    ids, labels, is_token = data

    def loss(weights, rows):
        batch = pf.data.LabelledBatch(ids[rows], labels[rows], is_token[rows])
        return pf.classification_loss(eqx.combine(weights, rest), batch)

    def step(n, state):
        weights, memory = state
        rate = learning_rate * jnp.minimum((n + 1) / 10, (1 + jnp.cos(jnp.pi * n / num_steps)) / 2)
        changes, memory = optimiser.update(jax.grad(loss)(weights, batches[n]), memory)
        return jax.tree.map(lambda weight, change: weight - rate * change, weights, changes), memory

    weights, _ = jax.lax.fori_loop(0, num_steps, step, (weights, optimiser.init(weights)))
    return eqx.combine(weights, rest)


def classifier(encoder: pf.Encoder | None, num_classes: int, seed: int, pooling="mean") -> pf.EncoderClassifier:
    """A classifier with a fresh head, and with this encoder in place of the fresh one, if there is one."""
    config = pf.ClassifierConfig(encoder=ENCODER, num_classes=num_classes, pooling=pooling)
    fresh = pf.EncoderClassifier(config, key=jax.random.key(seed))
    return fresh if encoder is None else eqx.tree_at(lambda model: model.encoder, fresh, encoder)


def letter_groups(texts: list[str], labels: np.ndarray):
    """A linear model of groups of one to four letters."""
    counts = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), lowercase=False, sublinear_tf=True)
    return make_pipeline(counts, LogisticRegression(C=30, tol=1e-3, max_iter=1000)).fit(texts, labels)


read = eqx.filter_jit(lambda model, ids, is_token: model(ids, is_token))


def answers(model, names: Names) -> np.ndarray:
    """The language that a classifier names for each text."""
    return np.asarray(read(model, names.ids, names.is_token).argmax(axis=1))


def fine_tuned(start, learning: Names, num_labels: int, seed: int, rate: float, times: int = 1):
    """A model after fine-tuning with so many labels of each language, or after so many times the steps."""
    data = learning.ids, jnp.asarray(learning.labels), learning.is_token
    batches = batches_of(labelled(learning, num_labels, seed), seed)
    return tuned(start, data, batches, jnp.asarray(times * NUM_STEPS[num_labels]), jnp.asarray(rate))


def largest_groups(linear, languages: list[str]) -> dict[str, list[str]]:
    """The letter groups with the largest weights for some languages."""
    names, coefficients = linear[0].get_feature_names_out(), linear[1].coef_
    order = {language: np.argsort(-coefficients[languages.index(language)])[:6] for language in EXAMPLES}
    return {language: [str(names[place]) for place in places] for language, places in order.items()}


def results() -> dict:
    """The accuracies of all models, in percent, and what the last fine-tuned one does."""
    splits = pf.data.name_splits()
    languages = sorted({name.language for name in splits.training})
    learning, test = Names(splits.training, languages), Names(splits.test, languages)
    stored, _ = pf.load_pretrained("encoder")
    accuracy: dict[str, dict[str, list[float]]] = {}

    def note(name: str, num_labels: int, right) -> None:
        accuracy.setdefault(name, {}).setdefault(str(num_labels), []).append(round(100 * float(np.mean(right)), 2))
        print(name, num_labels, accuracy[name][str(num_labels)][-1], flush=True)

    for num_labels, seed in itertools.product(NUM_STEPS, SEEDS):
        rows = labelled(learning, num_labels, seed)
        linear = letter_groups([learning.texts[row] for row in rows], learning.labels[rows])
        note("n-grams", num_labels, linear.predict(test.texts) == test.labels)
        for name, encoder in [("from scratch", None), ("pre-trained", stored.encoder)]:
            start = classifier(encoder, len(languages), seed)
            model = fine_tuned(start, learning, num_labels, seed, RATES[name][num_labels])
            note(name, num_labels, answers(model, test) == test.labels)
            if seed == 0:
                longer = fine_tuned(start, learning, num_labels, seed, RATES[name][num_labels], LONGER)
                note(f"{name}, {LONGER} times the steps", num_labels, answers(longer, test) == test.labels)
        for way in frozen.WAYS:
            note(way, num_labels, frozen.right_by(way, stored.encoder, seed, learning, rows, test))
        if num_labels == 5:
            start = classifier(stored.encoder, len(languages), seed, pooling="class")
            by_token = fine_tuned(start, learning, num_labels, seed, RATES["pre-trained"][num_labels])
            note("class token", num_labels, answers(by_token, test) == test.labels)
    return {
        "languages": languages,
        "num_test": len(test.texts),
        "accuracy": accuracy,
        "answers": "".join(chr(ord("a") + number) for number in answers(model, test)),
        "groups": largest_groups(linear, languages),
        "num_groups": len(linear[0].get_feature_names_out()),
    }


def table(accuracy: dict) -> str:
    """A line of the card for each way: means of three draws, and the least and the largest."""
    lines = ["| labels of each language | " + " | ".join(map(str, NUM_STEPS)) + " |", "|---" * 4 + "|"]
    for name, each in accuracy.items():
        cells = [f"{np.mean(found):.1f} % ({min(found):.1f} to {max(found):.1f})" for found in each.values()]
        lines.append(f"| {' | '.join([name, *cells, *['–'] * (3 - len(cells))])} |")
    return "\n".join(lines)


def listed(numbers: Iterable[float]) -> str:
    """Whole numbers in a row, as a sentence has them."""
    *others, last = (f"{number:.0f}" for number in numbers)
    return f"{', '.join(others)} and {last}"


def facts(found: dict) -> dict[str, str]:
    """What chapters say, in per cent: languages recognised, by the number of labels, and what pre-training adds."""
    texts: dict[str, str] = {}
    for way in ("n-grams", "pre-trained", "from scratch"):
        each = found["accuracy"][way]
        texts[way] = listed(np.mean(right) for right in each.values())
        texts |= {f"{way}.100.mean": f"{np.mean(each['100']):.1f}", **ends(f"{way}.100", each["100"], ".1f")}
    before, after = (found["accuracy"][f"{way}, {LONGER} times the steps"] for way in ("from scratch", "pre-trained"))
    gains = {n: np.subtract(found["accuracy"]["pre-trained"][n], found["accuracy"]["from scratch"][n]) for n in after}
    for number, each in gains.items():
        texts |= ends(f"gain.{number}", each, ".1f")
    for way in frozen.WAYS:
        texts[way] = listed(np.mean(right) for right in found["accuracy"][way].values())
    texts["longer.gain"] = listed(after[number][0] - before[number][0] for number in after)
    return texts


def card(found: dict) -> str:
    """What was done, and what came out."""
    steps = ", ".join(f"{number} steps with {labels} labels" for labels, number in NUM_STEPS.items())
    rates = "; ".join(f"{name} {', '.join(f'{rate:g}' for rate in each.values())}" for name, each in RATES.items())
    return f"""# Which language a name is of

In which of {len(found["languages"])} languages is a name? The stored encoder, fine-tuned with few labels, beside the
same network from scratch and a linear model of letter groups. No weights are kept: the accuracies are the result, and
stand in `record.json`, with the answers and the letter groups that {{ref}}`sec-encoder` shows: those of the
models of seed 2 with 100 labels of each language.

- **Data.** `plainformer.data.name_splits()`; labels are drawn from its training part, {found["num_test"]:,} names of
  other things are tested.
- **Models.** `encoder.safetensors` or fresh weights, with the mean of the vectors or, where it is said, with the class
  token; letter groups: groups of 1 to 4 letters within words, tf-idf, logistic regression with C = 30.
- **Training.** {steps}, of {BATCH_SIZE} names each;
  Adam, no weight decay, no dropout. Learning rates, each the best of 0.001, 0.003 and 0.01 on a fifth of the things in
  the training part: {rates}; with the class token as pre-trained.
  Seeds 0, 1, 2 for labels, fresh weights and batches. All settings stand in `lab/fine_tuning/run.py`; `make
  models ONLY=fine_tuning` trains them again.
- **Result.** Share of test names whose language is recognised, mean of three seeds, with the least and the largest:

{table(found["accuracy"])}

  Frozen: the encoder stays as it is, and a logistic regression reads the mean of the vectors that it gives, of those in
  its table, or of those of an encoder with fresh weights; C is chosen by cross-validation
  (`lab/fine_tuning/frozen.py`).
- **Knobs turned.** {LONGER} times the steps, first seed, as the table says.
- **Limits.** One encoder, small and of one seed; three draws of the labels. Other versions of Babel have other names.
- **Licence.** The numbers are under Apache-2.0, as the code; the names are of the CLDR, through Babel.
"""
