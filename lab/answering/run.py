"""Teach the teller of stories to answer in a form, with different losses, beside the teller that was never tuned.

No weights are kept: `record.json` holds what came out, and the chapter on fine-tuning reads it.
"""

from functools import cache

import jax
import numpy as np

import plainformer as pf
from lab.records import BUILD, kept
from lab.verbs_last.run import above
from plainformer.data.little_world import WORLD_WORDS

NEEDS = ("staircase",)
KEPT = BUILD / "answering"
FORM = pf.Vocabulary(WORLD_WORDS, special=["<question>", "<answer>", "<end>"], separator=" ")
NUM_WORDS, NUM_DIALOGUES, NUM_KEPT_BACK, BATCH_SIZE, NUM_STEPS, SEEDS = 48, 400, 400, 16, 150, (0, 1, 2)
LENGTH, NUM_WRITTEN, RATES = 56, 4, (0.0003, 0.001, 0.003)
QUESTION, ANSWER, END = (FORM.special[name] for name in ("<question>", "<answer>", "<end>"))
LOSSES = ("answers", "questions, too", "all tokens", "padding, too", "end as padding")


def dialogue_ids(dialogue: pf.data.Dialogue) -> list[int]:
    """Story, question and answer with the template's tokens."""
    asked, answer = FORM.encode(dialogue.question), FORM.encode(dialogue.answer)
    return [*FORM.encode(dialogue.story), QUESTION, *asked, ANSWER, *answer, END]


def windows(texts: list[list[int]], loss: str) -> pf.data.PaddedWindows:
    """Dialogues as a batch in which those targets count that a loss counts."""
    if loss == "questions, too":
        return pf.models.answer_windows(texts, QUESTION, LENGTH)
    found = pf.models.answer_windows(texts, ANSWER, LENGTH)
    _, is_token = pf.data.pad_texts(texts, LENGTH + 1)
    if loss == "all tokens":
        return found._replace(is_token=is_token[:, 1:])
    if loss == "padding, too":
        return found._replace(is_token=found.is_token | ~is_token[:, 1:])
    if loss == "end as padding":  # one id for both, and a mask made from it
        return found._replace(is_token=found.is_token & (found.targets != END))
    return found


def judged(model, prompts: list[list[int]], told: list[pf.data.Dialogue], vocabulary, end: int) -> dict:
    """The share of right answers, of those that end after one word, and of those that do both."""
    written = pf.generate(model, prompts, NUM_WRITTEN, temperature=0, stop_tokens=[end])
    right = [vocabulary.tokens[each.tokens[0]] == d.answer for each, d in zip(written, told, strict=True)]
    ends = [each.stopped and len(each.tokens) == 2 for each in written]
    both = [one and other for one, other in zip(right, ends, strict=True)]
    return {name: round(float(np.mean(of)), 4) for name, of in (("right", right), ("ends", ends), ("both", both))}


def forgotten(model) -> float:
    """Nats per word above the lowest loss, on stories: of what the model gives to the old words alone."""

    def old_words(inputs, key=None):
        return model(inputs + len(FORM.special))[..., len(FORM.special) :]

    return above(old_words, "old")


def tuned(loss: str, rate: float, seed: int, times: int):
    """The decoder after its training on dialogues."""
    stored, _ = pf.load_pretrained("stories")
    model = pf.models.add_tokens(stored, len(FORM.special), key=jax.random.key(seed))
    every = windows([dialogue_ids(each) for each in pf.data.dialogues(NUM_DIALOGUES, NUM_WORDS, 10 + seed)], loss)

    def batch_at(step: int) -> pf.data.PaddedWindows:
        drawn = np.random.default_rng([seed, step]).integers(NUM_DIALOGUES, size=BATCH_SIZE)
        return jax.tree.map(lambda array: array[drawn], every)

    training = pf.TrainingConfig(num_steps=NUM_STEPS * times, learning_rate=rate, warmup_steps=20, seed=seed)
    return pf.fit(model, pf.training.next_token_loss, batch_at, training, progress=False).model


def result(loss: str, rate: float, seed: int, times: int = 1) -> dict:
    """What it answers after its training, and how much it has forgotten; kept under `build`."""

    def find() -> dict:
        model = tuned(loss, rate, seed, times)
        told = pf.data.dialogues(NUM_KEPT_BACK, NUM_WORDS, 1000)
        prompts = [(ids := dialogue_ids(each))[: ids.index(ANSWER) + 1] for each in told]
        return judged(model, prompts, told, FORM, END) | {"old": forgotten(model)}

    return kept(KEPT / f"{loss}-{rate:g}-{seed}-{times}.json".replace(" ", "_"), find) | {"rate": rate}


@cache
def untuned() -> dict:
    """The decoder that was never tuned: asked in its own way, after which a full stop ends, and in the form."""
    stored, words = pf.load_pretrained("stories")
    told = pf.data.dialogues(NUM_KEPT_BACK, NUM_WORDS, 1000)
    own = [words.encode(f"{each.story} {each.question} ?") for each in told]
    new = pf.models.add_tokens(stored, len(FORM.special), key=jax.random.key(0))
    form = [(ids := dialogue_ids(each))[: ids.index(ANSWER) + 1] for each in told]
    end = words.encode(".")[0]
    return {"own way": judged(stored, own, told, words, end), "form": judged(new, form, told, FORM, END)}


@cache
def best(loss: str) -> float:
    """The rate that gives the most right answers that end, by seed 0; of equals the one that forgets least."""
    if loss not in ("answers", "all tokens"):
        return best("answers")
    return max(RATES, key=lambda rate: ((found := result(loss, rate, 0))["both"], -found["old"]))


def results() -> dict:
    """All losses at their best rates, and five times the steps."""
    rows = {loss: [result(loss, best(loss), seed) for seed in SEEDS] for loss in LOSSES}
    longer = {loss: result(loss, best(loss), 0, times=5) for loss in ("answers", "all tokens")}
    return {"untuned": untuned(), "losses": rows, "5 times the steps": longer}


def shares(each: list[dict], name: str) -> str:
    """The mean of three seeds in per cent, with the least and the largest."""
    of = [100 * seed[name] for seed in each]
    return f"{np.mean(of):.1f} % ({min(of):.1f} to {max(of):.1f})"


def facts(found: dict) -> dict[str, str]:
    """Nats above the lowest on stories after each loss, the mean of three seeds, and after five times the steps."""
    texts = {f"{loss}.old": f"{np.mean([seed['old'] for seed in each]):.2f}" for loss, each in found["losses"].items()}
    texts |= {f"{loss}.longer.old": f"{each['old']:.2f}" for loss, each in found["5 times the steps"].items()}
    return texts


def card(found: dict) -> str:
    """What was done, and what came out."""
    rows = "\n".join(
        f"| {loss} | {each[0]['rate']:g} | {shares(each, 'right')} | {shares(each, 'ends')} "
        f"| {np.mean([seed['old'] for seed in each]):.3f} |"
        for loss, each in found["losses"].items()
    )
    asked, longer = found["untuned"], found["5 times the steps"]
    knob = "; ".join(
        f"{loss} {100 * each['right']:.1f} % right, {each['old']:.3f} nats on stories" for loss, each in longer.items()
    )
    return f"""# A teller of stories answers in a form

The decoder of stories (`lab/staircase`) with three tokens more, tuned to dialogues of the little world: a story, a
question, its answer. No weights are kept: the numbers stand in `record.json`. Settings:
`lab/answering/run.py`; `make models ONLY=answering` trains all again.

- **Data.** `pf.data.dialogues`, {NUM_DIALOGUES} for each seed with stories of at most {NUM_WORDS} words, and
  {NUM_KEPT_BACK} kept back.
- **Training.** {NUM_STEPS} steps of {BATCH_SIZE} dialogues, AdamW, answers and all tokens at the best of the rates
  {", ".join(map(str, RATES))} by seed 0, the others at that of answers; seeds {", ".join(map(str, SEEDS))}.
- **Result.** Share of answers whose first word is right, and of those that end after one word; then how many nats per
  word above the lowest loss the tuned model is on stories, over the old words alone:

| what counts in the loss | rate | right | ends | on stories |
|---|---|---|---|---|
{rows}

- **Never tuned.** Asked in its own way, {100 * asked["own way"]["right"]:.1f} % right; in the form
  {100 * asked["form"]["right"]:.1f} %.
- **Knobs turned.** Five times the steps, seed 0: {knob}.
- **Limits.** The answers were known before: tuning teaches where to say them, and when to stop.
  Stories are short, so that most questions ask where something lies or who has it, and few need two steps.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
