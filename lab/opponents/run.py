"""Simple opponents of the table of tasks that are fitted in seconds: counts, linear models and a kernel machine.

Each is asked as the networks are. What a method leaves open is chosen on what the rates of networks are chosen by,
never on the test. No weights are kept.
"""

import numpy as np
from sklearn.metrics import mutual_info_score

import plainformer as pf
from lab.digits import few
from lab.filling.runs import NUM_SHOWN, choices, error, is_hidden, parts
from lab.opponents.stories import belonging
from lab.recurrent import runs as recurrent
from lab.recurrent.runs import BLANK, COPIED, COPY, SYMBOLS
from lab.story_labels import run as story_labels
from lab.vision.run import fold_of, moved_copies

ORDERS, DELAY, NUM_TEXTS = (6, 8, 10, 12), 80, 600 * 32
SHARPNESS, RIDGES = (0.2, 0.4, 0.7), (0.01, 0.03, 0.1)
COSTS, SCALES = (1.0, 10.0, 100.0), (0.5, 1.0, 2.0, 4.0)


def stories() -> list[float]:
    """Stories judged rightly, in per cent, by a linear model that is told which sentences belong together."""
    return [story_labels.counted(belonging, story_labels.learning(seed)) for seed in story_labels.SEEDS]


def letters() -> dict[str, dict[str, float]]:
    """Nats per letter of Python's reference, by counts of each order, on both halves of what is held out."""
    training, *halves = recurrent.texts()
    found: dict[str, dict[str, float]] = {}
    for order in ORDERS:
        model = pf.training.NgramModel(training, order, recurrent.TEXT.vocab_size, discount=None)
        choose, judge = (round(float(np.mean(model.loss(half))), 4) for half in halves)
        found[str(order)] = {"choose": choose, "judge": judge}
    return found


def copying() -> dict[str, float]:
    """Copying by a table of pairs at one distance: the one at which earlier symbols tell most of those that are due."""
    texts = recurrent.copy_texts(DELAY, (0,), NUM_TEXTS)
    due = np.arange(COPIED + DELAY, COPY[DELAY].seq_len)

    def pairs(distance: int) -> np.ndarray:
        counts = np.zeros((SYMBOLS + 2, SYMBOLS + 2))
        earlier, later = np.asarray(texts.inputs)[:, due - distance], np.asarray(texts.targets)[:, due]
        np.add.at(counts, (earlier.ravel(), later.ravel()), 1)
        return counts

    best = max(
        range(COPIED + DELAY + 1), key=lambda distance: mutual_info_score(None, None, contingency=pairs(distance))
    )
    asked = recurrent.copy_texts(DELAY, (9, True), 256)
    guesses = pairs(best).argmax(axis=1)[np.asarray(asked.inputs)[:, due - best]]
    return {"distance": best, "share": float(np.mean(guesses == np.asarray(asked.targets)[:, due]))}


def near(learned, judged, shown, sharpness: float, ridge: float):
    """The best linear guess of what is hidden, from means and covariances in which similar images count for more."""
    flat, filled, hidden = learned.reshape(len(learned), -1), np.empty_like(judged), is_hidden(shown).repeat(4, axis=1)
    for n, image in enumerate(judged.reshape(len(judged), -1)):
        out, seen = hidden[n], ~hidden[n]
        far = ((flat[:, seen] - image[seen]) ** 2).sum(axis=1)
        weights = np.exp(-sharpness * (far - far.min()))
        mean = weights @ flat / weights.sum()
        apart = flat - mean
        covariance = (apart * (weights / weights.sum())[:, None]).T @ apart + ridge * np.eye(flat.shape[1])
        guess, between = image.copy(), covariance[np.ix_(out, seen)]
        guess[out] = mean[out] + between @ np.linalg.solve(covariance[np.ix_(seen, seen)], (image - mean)[seen])
        filled[n] = guess.reshape(judged.shape[1:])
    return filled


def patches() -> dict:
    """The error of what is hidden, with the settings that are best on the fold."""

    def judged_by(part: str, *setting: float) -> float:
        learned, judged = parts(part)
        shown = choices(len(judged), NUM_SHOWN, 0)
        return error(near(learned, judged, shown, *setting), judged, shown)

    tried = {setting: judged_by("rest", *setting) for setting in ((s, r) for s in SHARPNESS for r in RIDGES)}
    best = min(tried, key=lambda setting: tried[setting])
    return {"setting": best, "fold": round(tried[best], 5), "error": judged_by("all", *best)}


def digits() -> dict:
    """Digits named by a support-vector machine that learns from moved copies, its settings chosen on the fold."""
    training, test = pf.data.digits()

    def named(learned, judged, cost: float, scale: float) -> float:
        copies = moved_copies(learned, 1)
        images = few.flat(copies)
        fitted = few.machine(cost, scale, images).fit(images, np.asarray(copies.labels))
        return float(fitted.score(few.flat(judged), np.asarray(judged.labels)))

    settings = [(cost, scale) for cost in COSTS for scale in SCALES]
    best = max(settings, key=lambda setting: named(*fold_of(training), *setting))
    return {"setting": best, "share": named(training, test, *best)}


def results() -> dict:
    """What all of them reach."""
    return {
        "stories": stories(),
        "letters": letters(),
        "copying": copying(),
        "patches": patches(),
        "digits": digits(),
    }


def best_order(found: dict) -> str:
    """The order of counting that is best on the half to choose by."""
    return min(found["letters"], key=lambda order: found["letters"][order]["choose"])


def facts(found: dict) -> dict[str, str]:
    """What chapters say."""
    return {"stories": f"{np.mean(found['stories']):.1f}", "patches": f"{found['patches']['error']:.3f}"}


def card(found: dict) -> str:
    """What was fitted, and what came out."""
    order, copying, (sharpness, ridge) = best_order(found), found["copying"], found["patches"]["setting"]
    letters = ", ".join(f"{name}-gram {each['judge']:.3f}" for name, each in found["letters"].items())
    cost, scale = found["digits"]["setting"]
    return f"""# Opponents that are fitted in seconds

Opponents of {{ref}}`sec-tasks` without a network. Each is asked as the networks are; what it leaves open is chosen as
their learning rates are. Nothing is kept but `record.json`.

- **Stories.** Logistic regression as in `lab/story_labels`, with 2,000 stories of either kind, on other features: each
  sentence beside the last one before it about the same person, thing or switch, and one step further back, with
  variables in place of names. It is *told* what belongs together. Right, in per cent:
  {", ".join(f"{right:.1f}" for right in found["stories"])}.
- **Letters of Python's reference.** Counts of several orders, mixed, on the half that judges in `lab/recurrent`:
  {letters}. Order {order} is the best on the other half.
- **Copying over {DELAY} blanks.** Of all distances the one is taken at which an earlier symbol tells most, by mutual
  information, of those that are due, and pairs at this distance are counted, in {NUM_TEXTS:,} texts. It finds
  {copying["distance"]}, and {copying["share"]:.1%} of the symbols are right. The blank is symbol {BLANK}.
- **Hidden patches of digits.** Linear regression of what is hidden on what is shown, in which similar images count for
  more: weights of exp(−{sharpness:g} times the squared distance), {ridge:g} added to the variances, chosen on the fold.
  Mean square error {found["patches"]["error"]:.4f}.
- **Digits.** A support-vector machine with a Gaussian kernel, five copies of each digit, moved by a pixel; C = {cost:g}
  and width {scale:g}, chosen on the fold. Right: {found["digits"]["share"]:.1%}.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
