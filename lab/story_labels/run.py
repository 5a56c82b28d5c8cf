"""Is a story possible? Pre-train an encoder on stories without labels, tune it with few, and write how it compares.

The encoder is stored in 8 bits. `record.json` holds what all contestants reach, with 5 to 2,000 stories of either
kind to learn from.
"""

import itertools
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import plainformer as pf
from lab import growing
from lab.fine_tuning.run import tuned
from lab.records import LAB, ends, kept
from lab.story_labels import hidden_words, story_encoder
from lab.story_labels.story_encoder import KEPT, LENGTH, MASKING, VOCABULARY, Plan, encode, is_open, pre_trained

NEEDS = ("staircase",)
SEEDS, BATCH_SIZE, NUM_TEST, TEST_SEED, CHOOSING_SEED = (0, 1, 2), 32, 2000, 0, 50
NUM_STEPS = {5: 100, 20: 200, 100: 400, 500: 800, 2000: 2000}  # by the number of labelled stories of either kind
RATES = (3e-4, 1e-3, 3e-3)


class Stories(NamedTuple):
    """Labelled stories, as ids."""

    texts: list[str]
    labels: np.ndarray
    ids: jax.Array
    is_token: jax.Array

    @classmethod
    def of(cls, labelled: list[pf.data.LabelledStory]) -> "Stories":
        """These stories; the label is 1 where a story is possible."""
        texts = [story.text for story in labelled]
        return cls(texts, np.array([story.is_possible for story in labelled], int), *encode(texts))

    def first(self, number: int) -> "Stories":
        """The first of them."""
        return Stories(self.texts[:number], self.labels[:number], self.ids[:number], self.is_token[:number])


@cache
def learning(seed: int) -> Stories:
    """As many stories of either kind as the longest list asks for, told in turn."""
    told = pf.data.labelled_stories(5 * max(NUM_STEPS) // 2, LENGTH, seed=1 + seed)
    kinds = [[story for story in told if story.is_possible is kind] for kind in (True, False)]
    return Stories.of([story for two in zip(*kinds, strict=False) for story in two][: 2 * max(NUM_STEPS)])


@cache
def judged(seed: int = TEST_SEED, number: int = NUM_TEST) -> Stories:
    """The stories that judge; with another seed those by which rates are chosen."""
    return Stories.of(pf.data.labelled_stories(number, LENGTH, seed=seed))


def batches_of(num_stories: int, num_steps: int, seed: int) -> jax.Array:
    """Again and again all labelled stories, in another order each time, cut into batches."""
    rng, length = np.random.default_rng(seed), BATCH_SIZE * max(num_steps, max(NUM_STEPS.values()))
    order = np.concatenate([rng.permutation(num_stories) for _ in range(-(-length // num_stories))])
    return jnp.asarray(order[:length].reshape(-1, BATCH_SIZE))


def classifier(encoder: pf.Encoder | None, seed: int) -> pf.EncoderClassifier:
    """A classifier with a fresh head, and with this encoder in place of the fresh one, if there is one."""
    config = pf.ClassifierConfig(encoder=Plan().config, num_classes=2, pooling="mean")
    fresh = pf.EncoderClassifier(config, key=jax.random.key(seed))
    return fresh if encoder is None else eqx.tree_at(lambda model: model.encoder, fresh, encoder)


read = eqx.filter_jit(lambda model, ids, is_token: model(ids, is_token))


def rows_of(model: Callable, stories: Stories) -> np.ndarray:
    """What a model gives for each story, 200 at a time."""
    parts = [slice(start, start + 200) for start in range(0, len(stories.texts), 200)]
    return np.concatenate([np.asarray(read(model, stories.ids[part], stories.is_token[part])) for part in parts])


def percent(right) -> float:
    """A share, in percent."""
    return round(100 * float(np.mean(right)), 2)


def accuracy(model: Callable, stories: Stories) -> float:
    """How many stories a classifier judges rightly, in percent."""
    return percent(rows_of(model, stories).argmax(axis=1) == stories.labels)


def fine_tuned(encoder, num_labels: int, seed: int, rate: float, num_steps: int | None = None) -> pf.EncoderClassifier:
    """A classifier after fine-tuning with so many stories of either kind."""
    told, num_steps = learning(seed), num_steps or NUM_STEPS[num_labels]
    data = told.ids, jnp.asarray(told.labels), told.is_token
    batches = batches_of(2 * num_labels, num_steps, seed)
    return tuned(classifier(encoder, seed), data, batches, jnp.asarray(num_steps), jnp.asarray(rate))


# --- opponents ------------------------------------------------------------------------------------------------


def pairs_of_sentences(text: str) -> list[str]:
    """The sentences of a story, and each two of them in their order."""
    said = text.strip(" .").split(" . ")
    return [*said, *(f"{one} > {other}" for one, other in itertools.combinations(said, 2))]


def counting(analyzer: Callable | None = None):
    """A linear model of what occurs in a story: groups of one to four words, or what the analyzer finds."""
    words = {"token_pattern": r"\S+", "ngram_range": (1, 4)} if analyzer is None else {"analyzer": analyzer}
    return make_pipeline(CountVectorizer(lowercase=False, binary=True, **words), LogisticRegression(max_iter=1000))


def chosen(model):
    """A logistic regression, as strongly regularised as is best on parts of what it learns from."""
    name = "C" if isinstance(model, LogisticRegression) else "logisticregression__C"
    return GridSearchCV(model, {name: [0.001, 0.01, 0.1, 1, 10]}, cv=3)


def counted(analyzer, told: Stories) -> float:
    """What counting reaches after some labels."""
    model = chosen(counting(analyzer)).fit(told.texts, told.labels)
    return percent(model.predict(judged().texts) == judged().labels)


# --- without labels -------------------------------------------------------------------------------------------


def by_largest(values: np.ndarray, stories: Stories) -> float:
    """If the half with the larger values is taken to be impossible, how many stories are judged rightly, in percent."""
    return percent((values < np.median(values)) == stories.labels)


def doubts(log_probs: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """By how much the likeliest word would have been likelier than the one that stands there, in nats."""
    return log_probs.max(axis=-1) - np.take_along_axis(log_probs, ids[..., None], axis=-1)[..., 0]


def doubts_of_encoder(model: pf.MaskedLanguageModel, stories: Stories) -> np.ndarray:
    """The largest doubt in each story, when each word that its neighbours leave open is hidden in its turn."""
    ids, largest = np.asarray(stories.ids), np.zeros(len(stories.texts))
    may_be_hidden = is_open(ids) & np.asarray(stories.is_token)
    for place in range(1, LENGTH - 1):
        hidden = ids.copy()
        hidden[:, place] = MASKING["mask_token"]
        log_probs = jax.nn.log_softmax(read(model, jnp.asarray(hidden), stories.is_token)[:, place])
        found = doubts(np.asarray(log_probs), ids[:, place])
        largest = np.maximum(largest, np.where(may_be_hidden[:, place], found, 0))
    return largest


def doubts_of_reader(model: Callable, stories: Stories) -> np.ndarray:
    """The largest doubt in each story of a model of the next word, such as the stored decoder."""
    ids = growing.encoded([text + " ." * (LENGTH - len(text.split())) for text in stories.texts])
    logits = np.concatenate([np.asarray(read_causally(model, each)) for each in np.split(ids, 20)])
    found = doubts(np.asarray(jax.nn.log_softmax(logits[:, :-1])), ids[:, 1:])
    return np.where(stories.is_token[:, 1:], found, 0).max(axis=1)


def without_labels(model: pf.MaskedLanguageModel) -> dict[str, float]:
    """What the largest doubt of the pre-trained encoder says, and that of a decoder."""
    decoder, _ = pf.load_pretrained("stories")
    return {
        "encoder": by_largest(doubts_of_encoder(model, judged()), judged()),
        "decoder": by_largest(doubts_of_reader(decoder, judged()), judged()),
    }


def hidden_word(model: pf.MaskedLanguageModel) -> dict[str, float]:
    """Nats at one hidden word of a story: of the encoder, and of counting on both sides of it."""
    counted = {f"{order}-gram": hidden_words.by_counting(order) for order in hidden_words.ORDERS}
    return {"encoder": hidden_words.by_encoder(model)} | counted


read_causally = eqx.filter_jit(lambda model, ids: model(ids))


# --- results --------------------------------------------------------------------------------------------------


def cached(name: str, make: Callable, *arguments) -> Any:
    """What was found before under this name, or what is found now."""
    return kept(KEPT / "found" / f"{name}.json", partial(make, *arguments))


def best_rate(encoder, num_labels: int) -> float:
    """The rate that is best on other stories, after labels that are not used elsewhere."""
    judges = judged(CHOOSING_SEED, 1000)
    return max(RATES, key=lambda rate: accuracy(fine_tuned(encoder, num_labels, CHOOSING_SEED, rate), judges))


def of_network(name: str, encoder) -> dict[str, dict]:
    """Rate and accuracies of a network, from this encoder or from scratch, for every number of labels."""

    def run(num_labels: int, seed: int, rate: float) -> float:
        return accuracy(fine_tuned(encoder, num_labels, seed, rate), judged())

    found = {}
    for number in NUM_STEPS:
        rate = cached(f"{name} {number} rate", best_rate, encoder, number)
        runs = [cached(f"{name} {number} {seed}", run, number, seed, rate) for seed in SEEDS]
        found[str(number)] = {"rate": rate, "accuracy": runs}
    return found


def by_means(vectors: Callable, told: Stories) -> float:
    """What a linear model of the means of each story's vectors reaches."""
    known, asked = (pf.mean_pool(jnp.asarray(vectors(each)), each.is_token) for each in (told, judged()))
    model = chosen(LogisticRegression(max_iter=2000)).fit(np.asarray(known), told.labels)
    return percent(model.predict(np.asarray(asked)) == judged().labels)


def of_opponents(encoder: pf.Encoder) -> dict[str, dict]:
    """Accuracies of what counts, and of linear models of means of vectors, for every number of labels."""
    table = np.asarray(encoder.embedding.weight)
    ways = {
        "groups of words": (counted, None),
        "pairs of sentences": (counted, pairs_of_sentences),
        "means": (by_means, lambda stories: rows_of(encoder, stories)),
        "means of the table": (by_means, lambda stories: table[np.asarray(stories.ids)]),
    }
    return {
        name: {
            str(number): {
                "accuracy": [
                    cached(f"{name} {number} {seed}", make, what, learning(seed).first(2 * number)) for seed in SEEDS
                ]
            }
            for number in NUM_STEPS
        }
        for name, (make, what) in ways.items()
    }


def results() -> dict:
    """Pre-train, store the encoder, and let everybody compete."""
    model, metrics = pre_trained(Plan())
    pf.save_model(LAB / "story_labels" / "story_encoder.safetensors", model, VOCABULARY, stored_in="int8")
    model, _ = pf.load_model(LAB / "story_labels" / "story_encoder.safetensors", pf.MaskedLanguageModel, tokenizer=True)
    networks = {"pre-trained": model.encoder, "from scratch": None}
    accuracies = {name: of_network(name, encoder) for name, encoder in networks.items()} | of_opponents(model.encoder)

    def longer(name: str) -> float:
        rate = accuracies[name]["500"]["rate"]
        return accuracy(fine_tuned(networks[name], 500, SEEDS[0], rate, 5 * NUM_STEPS[500]), judged())

    return {
        "parameters": pf.count_parameters(model),
        "training loss": round(float(np.mean([each["loss"] for each in metrics[-100:]])), 4),
        "accuracy": accuracies,
        "without labels": cached("without labels", without_labels, model),
        "hidden word": cached("hidden word", hidden_word, model),
        "longer": {name: cached(f"{name} longer", longer, name) for name in networks},
    }


def table(accuracies: dict) -> str:
    """A line of the card for each contestant: means of three draws, and the least and the largest."""
    lines = [
        "| stories of either kind | " + " | ".join(f"{n:,}" for n in NUM_STEPS) + " |",
        "|---" * (len(NUM_STEPS) + 1) + "|",
    ]
    for name, each in accuracies.items():
        runs = [found["accuracy"] for found in each.values()]
        cells = [f"{np.mean(run):.1f} ({min(run):.1f} to {max(run):.1f})" for run in runs]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join(lines)


def facts(found: dict) -> dict[str, str]:
    """What chapters say, in per cent: stories judged rightly after the most labels, longer training, or no labels."""
    texts: dict[str, str] = {}
    for way, each in found["accuracy"].items():
        name, right = f"{way}.2000", each["2000"]["accuracy"]
        texts |= {name: f"{np.mean(right):.0f}", f"{name}.mean": f"{np.mean(right):.1f}", **ends(name, right, ".1f")}
    counted = texts["groups of words.2000"], texts["pairs of sentences.2000"]
    texts["counting.2000"] = max(counted, key=int)
    texts |= {f"longer.{way}": f"{right:.0f}" for way, right in found["longer"].items()}
    texts["without_labels.encoder"] = f"{found['without labels']['encoder']:.0f}"
    return texts


def card(found: dict) -> str:
    """What was done, and what came out."""
    plan, steps = Plan(), ", ".join(f"{number:,} with {labels:,}" for labels, number in NUM_STEPS.items())
    rates = "; ".join(
        f"{name} {', '.join(format(each['rate'], 'g') for each in found['accuracy'][name].values())}"
        for name in found["longer"]
    )
    return f"""# The encoder of stories

Is a story of the little world possible? An encoder, pre-trained on stories without labels and fine-tuned with few,
beside the same network from scratch and what counts. The pre-trained encoder, with the head that guesses words, is in
`story_encoder.safetensors`, in 8 bits; `record.json` holds the accuracies.

- **Data.** `plainformer.data.labelled_stories()`: whole sentences of stories of at most {LENGTH} words, half of which
  have one wrong answer; {NUM_TEST:,} to judge by, the same stories of either kind in turn to learn from. For
  pre-training {story_encoder.NUM_STORIES:,} stories of `plainformer.data.stories()`, {LENGTH} words each.
- **Model.** {plan.num_layers} blocks of width {plan.width} with heads of 16 columns: RMS norm, SwiGLU, rotary;
  {found["parameters"]:,} parameters.
- **Pre-training.** {plan.num_steps:,} steps of {story_encoder.BATCH_SIZE} stories. Words are hidden as in
  {{ref}}`sec-encoder`,
  {plan.fraction:.0%} of those that their two neighbours leave open: no word stood there in {story_encoder.OPEN:.0%} of
  the stories read. AdamW, learning rate up to {plan.learning_rate:g}, seed {plan.seed}. Loss
  {found["training loss"]:.3f} nats per hidden word.
- **Fine-tuning.** Steps of {BATCH_SIZE} stories: {steps}
  of either kind; Adam, no weight decay. Learning rates, the best of {", ".join(f"{rate:g}" for rate in RATES)}
  on other stories after other labels: {rates}.
  Counting and linear models: logistic regression, its strength chosen on parts of what is learned from.
- **Result.** Stories judged rightly, in percent, mean of three draws of the labels, with the least and the largest:

{table(found["accuracy"])}

  Without any label, the half of the stories with the largest doubt is called impossible: by how much the likeliest word
  would have been likelier than the one that stands there. The pre-trained encoder, from which each word that its
  neighbours leave open is hidden in its turn, is right for {found["without labels"]["encoder"]:.1f} %; the stored
  decoder of stories, `stories.safetensors`, for {found["without labels"]["decoder"]:.1f} %.
- **One hidden word.** Of {hidden_words.NUM_ASKED} other stories one open word is hidden, and guessed from both sides.
  Nats: {", ".join(f"{name} {nats:.3f}" for name, nats in found["hidden word"].items())}.
- **Knobs turned.** Five times the steps, with 500 labels of either kind and the first draw: pre-trained
  {found["longer"]["pre-trained"]:.1f} %, from scratch {found["longer"]["from scratch"]:.1f} %.
- **A slip of the program.** What stands for a hidden word is the id 0, which is that of the full stop; `<mask>` has the
  id 1, and is never seen. Pre-training and questions agree in this, so that the numbers are what they are, but the
  encoder cannot tell a hidden word from a full stop.
- **Not turned**: the width, heads of another size, another share of hidden words, another seed of the pre-training,
  whose loss was still falling. Tried before: to say of each word whether it was replaced by one that fits between the
  same neighbours. After 22,000 steps its loss, 0.052 nats a word, had hardly fallen, and the training was given up.
- **Licence.** The weights are Apache-2.0, as the code.
"""
