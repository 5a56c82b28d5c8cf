"""Let an encoder write: stories of the little world, filled in hole by hole, beside a decoder and counting.

The stored encoder of stories is trained further, on stories of which any number of words may be hidden, and stored in
8 bits. `record.json` holds how many sentences of what it writes are possible, by rounds, order and temperature.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import LAB, ends
from lab.story_labels.story_encoder import LENGTH, VOCABULARY, stories_to_read
from lab.writing_by_filling import story_writer
from lab.writing_by_filling.story_writer import MASK, Plan, bound, hidden, trained

NEEDS = ("staircase", "story_labels")
NUM_WRITTEN, SEEDS, TEST_SEED, COLD = 200, (0, 1), 2000, 0.5
ROUNDS = {"whole": (1, 4, 16, LENGTH - 1), "middle": (1, 4, 16)}
GAP, NUM_CHOICES = slice(24, 40), (16, 64)
ORDERS, NUM_COUNTED = (3, 5), 20_000


# --- texts, and how they are judged ---------------------------------------------------------------------------


@cache
def told() -> list[str]:
    """Stories that nobody has read before."""
    return pf.data.stories(NUM_WRITTEN, LENGTH, seed=TEST_SEED)


def ids_of(texts: list[str]) -> np.ndarray:
    """The ids of stories of equal length."""
    return np.array([VOCABULARY.encode(text) for text in texts])


def judged(texts: list[str]) -> dict[str, Any]:
    """Of all sentences: the share that is possible, that is a question, and that its story has said before, in percent.

    And how many different ones there are, and of how many stories no sentence is impossible, in percent.
    """
    stories = [pf.data.possible_sentences(text) for text in texts]
    sentences = [each for story in stories for each, _ in story]
    possible = [right for story in stories for _, right in story]
    again = [each in [other for other, _ in story[:n]] for story in stories for n, (each, _) in enumerate(story)]
    return {
        "possible": percent(possible),
        "whole": percent([all(right for _, right in story) for story in stories]),
        "questions": percent(["?" in each for each in sentences]),
        "again": percent(again),
        "different": len(set(sentences)),
    }


def percent(right) -> float:
    """A share, in percent."""
    return round(100 * float(np.mean(right)), 2)


# --- who writes -----------------------------------------------------------------------------------------------


def by_filling(model, start: np.ndarray, rounds: int, order: str, seed: int, temperature: float = 1.0) -> list[str]:
    """What the encoder makes of stories with holes."""
    options: dict[str, Any] = {"order": order, "temperature": temperature, "key": jax.random.key(seed)}
    found = pf.fill_holes(model, jnp.asarray(start), rounds, mask_token=MASK, **options)[-1]
    return [VOCABULARY.decode(ids) for ids in np.asarray(found)]


def by_decoder(beginnings: list[str], num_words: int, seed: int, temperature: float = 1.0) -> list[str]:
    """What the stored decoder writes behind these beginnings, word by word."""
    decoder, words = pf.load_pretrained("stories")
    options: dict[str, Any] = {"temperature": temperature, "tokenizer": words, "key": jax.random.key(seed)}
    found = pf.generate(decoder, beginnings, num_words, **options)
    return [f"{begin} {each.text}" for begin, each in zip(beginnings, found, strict=True)]


def by_counting(order: int, seed: int) -> list[str]:
    """What a model writes from left to right that has counted groups of so many words in stories."""
    ids, size = stories_to_read()[:NUM_COUNTED].astype(int), len(VOCABULARY)
    model = pf.training.NgramModel(ids.ravel(), order, size, discount=None)
    random, texts = np.random.default_rng(seed), starts()["whole"]

    @cache
    def probabilities(context: tuple[int, ...]) -> np.ndarray:
        row = np.array([model.probability(word, context) for word in range(size)])
        row[MASK] = 0
        return row / row.sum()

    for text in texts:
        for place in range(1, LENGTH):
            context = tuple(text[max(place - order + 1, 0) : place].tolist())
            text[place] = random.choice(size, p=probabilities(context))
    return [VOCABULARY.decode(text) for text in texts]


@eqx.filter_jit
def _log_probs(model, ids):
    found = jax.nn.log_softmax(model(ids[:, :-1]))
    return jnp.take_along_axis(found, ids[:, 1:, None], axis=-1).sum(axis=(1, 2))


def best_middles(num_choices: int, seed: int) -> list[str]:
    """What the decoder fills in: the likeliest whole story of so many whose middles it wrote."""
    decoder, words = pf.load_pretrained("stories")
    candidates = [decoded_middles(seed + 100 * number) for number in range(1, num_choices + 1)]
    ids = [jnp.asarray([words.encode(text) for text in texts]) for texts in candidates]
    best = np.argmax([np.asarray(_log_probs(decoder, each)) for each in ids], axis=0)
    return [candidates[choice][number] for number, choice in enumerate(best)]


def decoded_middles(seed: int) -> list[str]:
    """Stories whose middle the decoder wrote behind the beginning; it saw nothing of the end."""
    words = [text.split() for text in told()]
    begun = by_decoder([" ".join(each[: GAP.start]) for each in words], GAP.stop - GAP.start, seed)
    return [f"{text} {' '.join(each[GAP.stop :])}" for text, each in zip(begun, words, strict=True)]


# --- results --------------------------------------------------------------------------------------------------


def starts() -> dict[str, np.ndarray]:
    """Stories of which all but the first word, or only the middle, is to be written."""
    middle, whole = ids_of(told()), ids_of(told())
    middle[:, GAP], whole[:, 1:] = MASK, MASK
    return {"whole": whole, "middle": middle}


def of_encoder(model) -> dict[str, dict]:
    """How its stories are judged, whole ones and middles, by order, rounds and seed."""
    found: dict[str, dict] = {name: {} for name in ROUNDS}
    for name, start in starts().items():
        for order in ("surest", "random", "left"):
            numbers = ROUNDS[name] if order != "left" else ROUNDS[name][-1:]
            found[name][order] = {
                str(rounds): [judged(by_filling(model, start, rounds, order, seed)) for seed in SEEDS]
                for rounds in numbers
            }
    return found


def of_others() -> dict[str, dict]:
    """How the stories of the others are judged, by seed."""
    first = ["."] * NUM_WRITTEN
    whole: dict[str, Callable] = {"decoder": lambda seed: by_decoder(first, LENGTH - 1, seed)}
    whole |= {f"{order}-gram": partial(by_counting, order) for order in ORDERS}
    middle: dict[str, Callable] = {"decoder": decoded_middles}
    middle |= {f"decoder, best of {number}": partial(best_middles, number) for number in NUM_CHOICES}
    return {
        name: {who: [judged(write(seed)) for seed in SEEDS] for who, write in each.items()}
        for name, each in {"whole": whole, "middle": middle}.items()
    }


def colder(model) -> dict[str, dict]:
    """The same with logits divided by a number below 1, from the first seed."""
    rounds = LENGTH - 1
    return {
        "surest": judged(by_filling(model, starts()["whole"], rounds, "surest", SEEDS[0], COLD)),
        "decoder": judged(by_decoder(["."] * NUM_WRITTEN, rounds, SEEDS[0], COLD)),
    }


def surprises(model) -> dict[str, float]:
    """Nats per word of unread stories: the encoder's bound, the decoder's surprise, and the lowest possible."""
    decoder, words = pf.load_pretrained("stories")
    ids, loss = jnp.asarray(ids_of(told())), eqx.filter_jit(bound)
    bounds = [loss(model, hidden(ids, jax.random.key(seed))) for seed in range(20)]
    by_decoder = -_log_probs(decoder, jnp.asarray([words.encode(text) for text in told()])) / (LENGTH - 1)
    lowest = [pf.data.word_surprises(text).mean() for text in told()]
    numbers = {"encoder": bounds, "decoder": by_decoder, "lowest": lowest}
    return {name: round(float(np.mean(np.asarray(each))), 4) for name, each in numbers.items()}


def results() -> dict:
    """Train the encoder further, store it, and let everybody write."""
    model, metrics = trained(Plan())
    path = LAB / "writing_by_filling" / "story_writer.safetensors"
    pf.save_model(path, model, VOCABULARY, stored_in="int8")
    model, _ = pf.load_model(path, pf.MaskedLanguageModel, tokenizer=True)
    return {
        "parameters": pf.count_parameters(model),
        "training loss": round(float(np.mean([each["loss"] for each in metrics[-100:]])), 4),
        "surprise": surprises(model),
        "told": judged(told()),
        "encoder": of_encoder(model),
        "others": of_others(),
        "colder": colder(model),
    }


def mean_of(runs: list[dict], what: str = "possible") -> float:
    """The mean of what was found with each seed."""
    return float(np.mean([each[what] for each in runs]))


def rows_of(found: dict, name: str) -> dict[str, dict[str, list[dict]]]:
    """Who wrote whole stories, or middles: what was found with each seed, by rounds; the others read once a word."""
    rounds = str(ROUNDS[name][-1])
    return found["encoder"][name] | {who: {rounds: runs} for who, runs in found["others"][name].items()}


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: shares of possible sentences, and of stories with a filled middle, in per cent; nats."""
    texts = {"told.different": f"{found['told']['different']}", "told.again": f"{found['told']['again']:.0f}"}
    for who, each in rows_of(found, "whole").items():
        for rounds, runs in each.items():
            name = f"{who}.{rounds}"
            texts |= {name: f"{mean_of(runs):.0f}", **ends(name, [run["possible"] for run in runs], ".1f")}
            texts[f"{name}.different"] = f"{mean_of(runs, 'different'):.0f}"
            texts[f"{name}.again"] = f"{mean_of(runs, 'again'):.0f}"
    for who, each in rows_of(found, "middle").items():
        texts |= {f"middle.{who}.{rounds}": f"{mean_of(runs, 'whole'):.0f}" for rounds, runs in each.items()}
    texts |= {f"cold.{who}": f"{each['possible']:.0f}" for who, each in found["colder"].items()}
    texts |= {f"cold.{who}.different": f"{each['different']}" for who, each in found["colder"].items()}
    return texts | {f"nats.{who}": f"{nats:.3f}" for who, nats in found["surprise"].items()}


def table(found: dict, name: str, what: str) -> str:
    """A line for each writer: what was found after each number of rounds, with each seed."""
    head = ["", *(f"{rounds} rounds" if rounds > 1 else "1 round" for rounds in ROUNDS[name])]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for who, each in rows_of(found, name).items():
        cells = [" and ".join(format(run[what], "g") for run in each.get(str(r), [])) for r in ROUNDS[name]]
        lines.append(f"| {' | '.join([who, *cells])} |")
    return "\n".join(lines)


def card(found: dict) -> str:
    """What was done, and what came out."""
    plan, cold = Plan(), found["colder"]
    colder_lines = "; ".join(
        f"{who} {each['possible']:.1f} %, {each['different']} different sentences" for who, each in cold.items()
    )
    nats = found["surprise"]
    return f"""# An encoder that writes

The stored encoder of stories (`lab/story_labels`), trained further with any number of words hidden, fills in whole
stories of the little world, or their middles. Beside it the decoder writes word by word (`lab/staircase`), and so do
models that count. The encoder is in `story_writer.safetensors`, in 8 bits; `record.json` holds what came out.

- **Model.** {found["parameters"]:,} parameters: 4 blocks of width 64, as in `lab/story_labels`.
- **Training.** {plan.num_steps:,} steps of {story_writer.BATCH_SIZE} stories of {LENGTH} words, after the 12,000 steps
  of the stored encoder, whose holes were the token 0, the full stop; now they are the token `<mask>`. Of each story one
  to all words after the first are hidden, each number as likely as another, always behind the mask. The loss is the
  mean surprise at a story's hidden words, averaged over stories: as if what is hidden of a share u of a text counted
  1 / u. AdamW, learning rate up to {plan.learning_rate:g}, seed {plan.seed}. Loss
  {found["training loss"]:.3f} nats.
- **A bound.** Of {NUM_WRITTEN} unread stories: {nats["encoder"]:.3f} nats per word at most, if the encoder writes one
  word at a time in a random order (20 draws of what is hidden). The decoder has {nats["decoder"]:.3f}, the lowest
  possible is {nats["lowest"]:.3f}.
- **Whole stories.** {NUM_WRITTEN} stories of {LENGTH} words, of which the first full stop is given; temperature 1;
  seeds {" and ".join(map(str, SEEDS))} of the draws. Possible sentences, in percent:

{table(found, "whole", "possible")}

  Different sentences among all that were written; told by the little world itself: {found["told"]["different"]}:

{table(found, "whole", "different")}

  Sentences that the same story has said before, in percent; told: {found["told"]["again"]:g}:

{table(found, "whole", "again")}

- **Middles.** Of {NUM_WRITTEN} unread stories, words {GAP.start + 1} to {GAP.stop} are hidden. Stories in which every
  sentence is possible, in percent:

{table(found, "middle", "whole")}

  The decoder sees only what stands on the left. Its best middle is that of {" or ".join(map(str, NUM_CHOICES))} whose
  whole story it finds likeliest.
- **Knobs turned.** The rounds, the order and the seed of the draws, as above. Temperature {COLD:g}, one word a round,
  seed {SEEDS[0]}: {colder_lines}.
- **Opponents.** The {" and ".join(f"{order}-gram" for order in ORDERS)} models have counted {NUM_COUNTED:,} of the
  stories that the encoder read, with the discounts of Chen and Goodman, and write from left to right.
- **Not turned**: the training from fresh weights, its length, rate and seed, a loss in which all hidden words count
  alike, a number of words that changes from round to round, noise added to how sure a word is.
- **Licence.** The weights are Apache-2.0, as the code.
"""
