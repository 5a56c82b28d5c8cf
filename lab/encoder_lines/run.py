"""What the encoder of names learns from other texts: lines of one language, of several, and single names."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.linear_model import LogisticRegression

import plainformer as pf
from lab.encoder import run as encoder_run
from lab.encoder.run import encode
from lab.records import BUILD, percent
from plainformer.data.names import LabelledName, NameSplits

ENCODER = dataclasses.replace(encoder_run.ENCODER, context_len=40)
BATCH_SIZE = 48
KINDS = ("lines of one language", "lines of all languages", "single names")
SEEDS, NUM_LABELS, NUM_DRAWS = range(3), (5, 100), 3
SHORTER = dataclasses.replace(encoder_run.TRAINING, num_steps=2000)
NAMES_PER_LINE = 3  # about as many letters in a step as lines of forty letters have


def line_of(names: list[list[int]], rng: np.random.Generator) -> list[int]:
    """Names of one list, drawn at random and put one behind the other until the line is full."""
    line: list[int] = []
    while len(line) < ENCODER.context_len:
        line += names[rng.integers(len(names))]
    return line[: ENCODER.context_len]


def lines(names: list[LabelledName], seed: int):
    """From the number of the step to a batch of lines, each of names from one list, hidden anew each time."""
    lists: dict[str, list[list[int]]] = {}
    for name in names:
        lists.setdefault(name.language, []).append(encoder_run.VOCABULARY.encode(f"{name.text}, "))
    shares = np.array([len(each) for each in lists.values()]) / len(names)
    is_token = jnp.ones((BATCH_SIZE, ENCODER.context_len), bool)

    def batch_at(step):
        rng = np.random.default_rng([seed, step])
        chosen = list(lists.values())
        rows = [line_of(chosen[rng.choice(len(chosen), p=shares)], rng) for _ in range(BATCH_SIZE)]
        return encoder_run.masked(jnp.asarray(np.array(rows, np.int32)), is_token, seed, jnp.asarray(step))

    return batch_at


def single_names(names: list[LabelledName], seed: int):
    """From the number of the step to a batch of names, each by itself."""

    def batch_at(step):
        rng = np.random.default_rng([seed, step])
        chosen = rng.integers(len(names), size=NAMES_PER_LINE * BATCH_SIZE)
        return encoder_run.masked(*encode([names[n].text for n in chosen], 20), seed, jnp.asarray(step))

    return batch_at


def batches(kind: str, names: list[LabelledName], seed: int):
    """The texts of one kind."""
    if kind == "single names":
        return single_names(names, seed)
    if kind == "lines of all languages":
        names = [name._replace(language="any") for name in names]
    return lines(names, seed)


def train_on(kind: str, names: list[LabelledName], seed: int) -> pf.MaskedLanguageModel:
    """The masked language model after training on texts of one kind."""
    model, _ = pf.fit(
        pf.MaskedLanguageModel(ENCODER, key=jax.random.key(seed)),
        pf.masked_token_loss,
        batches(kind, names, seed),
        SHORTER,
        directory=BUILD / f"encoder_{kind.replace(' ', '_')}_{seed}",
    )
    return model


def one_letter_of_each(names: list[LabelledName]) -> list:
    """A letter of each name, to be hidden: one of its first twenty."""
    rng = np.random.default_rng(0)
    return [([name.text[:20]], 0, int(rng.integers(len(name.text[:20])))) for name in names]


def mean_vectors(encoder: pf.Encoder, names: list[LabelledName]) -> np.ndarray:
    """Of each name the mean of its letters' vectors, without the class token."""
    tokens, is_token = encode([name.text for name in names], 20)
    return np.asarray(pf.mean_pool(eqx.filter_jit(encoder)(tokens, is_token)[:, 1:], is_token))


def recognised(known: np.ndarray, asked: np.ndarray, splits: NameSplits, num_labels: int, seed: int) -> float:
    """The share of test names whose language a linear map of their vectors finds, after some labels of each."""
    rng, languages = np.random.default_rng(seed), np.array([name.language for name in splits.training])
    of_each = [np.flatnonzero(languages == language) for language in sorted(set(languages))]
    rows = np.concatenate([rng.permutation(places)[:num_labels] for places in of_each])
    fitted = LogisticRegression(C=30, max_iter=2000).fit(known[rows], languages[rows])
    return fitted.score(asked, [name.language for name in splits.test])


def results_of(kind: str, splits: NameSplits) -> list[dict]:
    """For each seed the surprise at one hidden letter, and the share of languages recognised, by number of labels."""
    found = []
    for seed in SEEDS:
        model = train_on(kind, splits.training, seed)
        nats = encoder_run.surprise_by_encoder(model, one_letter_of_each(splits.test)).mean()
        known, asked = mean_vectors(model.encoder, splits.training), mean_vectors(model.encoder, splits.test)
        draws = {n: [recognised(known, asked, splits, n, draw) for draw in range(NUM_DRAWS)] for n in NUM_LABELS}
        shares = {str(number): round(float(np.mean(each)), 4) for number, each in draws.items()}
        found.append({"nats": round(float(nats), 3), "recognised": shares})
    return found


def results() -> dict:
    """Train on each kind of text with each seed, and return what came of it, beside counting."""
    splits = pf.data.name_splits()
    some = one_letter_of_each(splits.test)[::8]
    return {
        "names": len(splits.test),
        "kinds": {kind: results_of(kind, splits) for kind in KINDS},
        "counted": round(float(encoder_run.surprise_by_counting(splits.training, some).mean()), 3),
    }


def table(found: dict) -> str:
    """A row for each kind of text and seed."""
    lines = [f"| | hidden letter | {' | '.join(f'{number} labels' for number in NUM_LABELS)} |", "|---|---|---|---|"]
    for kind, seeds in found["kinds"].items():
        for seed, each in enumerate(seeds):
            shares = " | ".join(f"{share:.1%}" for share in each["recognised"].values())
            lines.append(f"| {kind}, seed {seed} | {each['nats']:.2f} | {shares} |")
    return "\n".join(lines)


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: in how many names the language is recognised, mean of the seeds, in per cent."""
    return {
        f"{kind}.{number}": percent(float(np.mean([each["recognised"][str(number)] for each in seeds])), 1)
        for kind, seeds in found["kinds"].items()
        for number in NUM_LABELS
    }


def card(found: dict) -> str:
    """What was done, and what came out."""
    few, many = NUM_LABELS
    return f"""# The encoder of names after other texts

No weights are kept: what a model as that of `lab/encoder/encoder.json` learns from texts that are made in another way.

- **Data.** The names of `lab/encoder`. Either lines of 40 characters, filled with names of one language; or such lines
  with names drawn from all languages together; or names by themselves, cut after 20 letters, {NAMES_PER_LINE} for each
  line.
- **Training.** {SHORTER.num_steps:,} steps of {BATCH_SIZE} lines, else as in `lab/encoder`; seeds 0 to 2 for weights,
  batches and dropout. All settings stand in `lab/encoder_lines/run.py`.
- **Result.** The mean surprise, in nats, at one hidden letter of each of {found["names"]:,} names of things held
  out, each by itself; and in how many of them a logistic regression of the mean of its vectors recognises the language,
  after {few} and {many} labels per language, mean of {NUM_DRAWS} draws of them. The encoder itself is \
not trained further. A 5-gram
  model of whole names has {found["counted"]:.2f} nats at every eighth of these letters.

{table(found)}

- **Limits.** A third of the steps of the stored encoder, which reads single names, since they came out best here.
"""
