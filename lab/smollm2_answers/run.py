"""Tune SmolLM2 to answer questions about the reader's short stories, and measure what that brings and costs.

No weights are kept: `record.json` holds what came out, and the chapter on fine-tuning reads it.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import BUILD, kept
from lab.smollm2_answers.card import card as card, facts as facts
from lab.smollm2_answers.judging import (
    LINE_BREAK,
    by_rule,
    in_own_words,
    judged,
    likeliest_rooms,
    remembered,
    with_examples,
    with_instruction,
)
from lab.smollm2_answers.questions import (
    LENGTH,
    NUM_TRAINED,
    OTHER_NAMES,
    OTHER_ROOMS,
    answer_ids,
    kept_back,
    prompt,
    renamed,
    smollm2,
    trained_on,
)

KEPT = BUILD / "smollm2_answers"
MAIN, STEPS, BATCH, EVERY = "rank 4", 200, 8, 25
SHORT_STEPS, SHORT_BATCH = 50, 4
NUM_ASKED, NUM_ON_THE_WAY = 200, 100  # questions before tuning, and on its way and after a short one
RATES = {
    "rank 1": (0.001, 0.003, 0.01, 0.03),
    "rank 4": (0.0003, 0.001, 0.003, 0.01),
    "rank 16": (0.001, 0.003, 0.01),
    "rank 4, queries and values": (0.003, 0.01, 0.03),
    "whole": (0.00003, 0.0001, 0.0003, 0.001),
}
OTHER_SEED = 1
RATE = 0.003  # of the long training and of other losses: the best for rank 4
LOSSES = ("all tokens", "padding, too", "end as padding")


def ids_of(question) -> list[int]:
    """The conversation with its answer."""
    return prompt(question.text) + answer_ids(question.room)


def counted(texts: list[list[int]], loss: str) -> pf.data.PaddedWindows:
    """Conversations as a batch in which those targets count that a loss counts."""
    found = pf.models.answer_windows(texts, LINE_BREAK, LENGTH)
    _, is_token = pf.data.pad_texts(texts, LENGTH + 1)
    if loss == "all tokens":
        return found._replace(is_token=is_token[:, 1:])
    if loss == "padding, too":
        return found._replace(is_token=found.is_token | ~is_token[:, 1:])
    if loss == "end as padding":  # SmolLM2's own id for padding is the one that ends an answer
        return found._replace(is_token=found.is_token & (found.targets != answer_ids("hall")[-1]))
    return found


def prepared(method: str, seed: int):
    """The model before it learns, and which of its arrays will."""
    model, _ = smollm2()
    if method == "whole":
        return model, None
    rank, _, where = method.removeprefix("rank ").partition(", ")
    chosen = {} if where else {"where": "stack"}
    return pf.models.add_adapters(model, int(rank), key=jax.random.key(seed), **chosen), pf.models.is_adapter


def trained(method: str, rate: float, num_steps: int, batch_size: int, loss: str = "answers", seed: int = 0, **options):
    """What `fit` makes of it; the seed draws the adapters and the order of the questions."""
    model, trainable = prepared(method, seed)
    every = counted([ids_of(each) for each in trained_on()], loss)

    def batch_at(step: int) -> pf.data.PaddedWindows:
        order = np.random.default_rng([step * batch_size // NUM_TRAINED, seed]).permutation(NUM_TRAINED)
        begin = step * batch_size % NUM_TRAINED
        return jax.tree.map(lambda array: array[jnp.asarray(order[begin : begin + batch_size])], every)

    config = pf.TrainingConfig(
        num_steps=num_steps,
        learning_rate=rate,
        warmup_steps=10,
        weight_decay=0.0,
        evaluate_every=EVERY,
        checkpoint_every=EVERY,
        max_to_keep=1,
    )
    return pf.fit(model, pf.training.next_token_loss, batch_at, config, trainable=trainable, progress=False, **options)


def short(method: str, rate: float, loss: str = "answers", seed: int = 0) -> dict:
    """A short training, kept under `build`."""

    def find() -> dict:
        tuned, metrics = trained(method, rate, SHORT_STEPS, SHORT_BATCH, loss, seed)
        model = merged(tuned)
        found = judged(model, kept_back()[:NUM_ON_THE_WAY]) | {"trained": num_trained(tuned)}
        found |= {"losses": [round(each["loss"], 4) for each in metrics]}
        return found | (remembered(model) if method == "whole" or (method == MAIN and loss == "answers") else {})

    name = f"{method}-{rate:g}-{loss}-{seed}".replace(" ", "_")
    return kept(KEPT / f"{name}.json", find) | {"rate": rate}


def num_trained(model) -> int:
    """How many numbers of a model were trained: its adapters', or all."""
    arrays = pf.training.named_arrays(model)
    return sum(a.size for name, a in arrays.items() if pf.models.is_adapter(name)) or pf.count_parameters(model)


def merged(model):
    """The same without adapters, as the programs that read the untuned model take it."""
    return pf.models.merge_adapters(model) if num_trained(model) < pf.count_parameters(model) else model


def before() -> dict:
    """The model as it came: asked as it is, told the form, and shown three examples."""
    model, _ = smollm2()
    questions = kept_back()
    some = questions[:NUM_ASKED]
    ways = {
        "as it is": lambda: judged(model, questions),
        "told the form": lambda: judged(model, some, with_instruction(some), LENGTH + 12),
        "three examples": lambda: judged(model, some, shown := with_examples(some), max(map(len, shown)) + 5),
        "own words": lambda: in_own_words(model, some),
        "other names": lambda: with_other(model, OTHER_NAMES),
        "other rooms": lambda: with_other(model, OTHER_NAMES | OTHER_ROOMS),
        "remembered": lambda: remembered(model),
        "four": lambda: {"asked": questions[:4], "said": likeliest_rooms(model, questions[:4])},
    }
    return {name: kept(KEPT / f"before-{name}.json".replace(" ", "_"), find) for name, find in ways.items()}


def with_other(model, names: dict[str, str]) -> dict:
    """What it makes of the same questions with other names, which may be a little longer."""
    return judged(model, [renamed(each, names) for each in kept_back()[:NUM_ON_THE_WAY]], length=LENGTH + 8)


def on_the_way(model) -> dict:
    """What a curve shows of a model: loss and shares, of the first questions kept back."""
    found = judged(model, kept_back()[:NUM_ON_THE_WAY])
    return {name if name != "loss" else "held_out": found[name] for name in ("loss", "right", "form", "room")}


def misasked(model) -> dict:
    """The same questions asked without the template, with another beginning, and with the turn of the user opened."""
    _, tokenizer = smollm2()
    some = kept_back()[:NUM_ON_THE_WAY]
    other = [{"role": "system", "content": "You are a helpful assistant."}]
    ways = {
        "no template": [tokenizer.encode(f"{each.text}\n") for each in some],
        "another beginning": [
            tokenizer.encode_conversation([*other, {"role": "user", "content": each.text}]) for each in some
        ],
        "turn of the user": [as_user(prompt(each.text)) for each in some],
    }
    return {name: judged(model, some, prompts) for name, prompts in ways.items()}


def as_user(ids: list[int]) -> list[int]:
    """A prompt whose last turn is opened for the user."""
    _, tokenizer = smollm2()
    (user,) = tokenizer.encode("user")
    start = tokenizer.special["<|im_start|>"]
    end = len(ids) - ids[::-1].index(start)
    return [*ids[:end], user, LINE_BREAK]


def long() -> dict:
    """The long training, with its curve, and what came of it."""

    def find() -> dict:
        start, begin = on_the_way(prepared(MAIN, 0)[0]), time.process_time()
        tuned, metrics = trained(MAIN, RATE, STEPS, BATCH, evaluate=on_the_way, directory=KEPT / "main")
        minutes, model = round((time.process_time() - begin) / 60, 1), merged(tuned)
        curve = [{"step": 0} | start]
        curve += [{name: each[name] for name in ("step", *start)} for each in metrics if "right" in each]
        return {
            "curve": curve,
            "losses": [round(each["loss"], 4) for each in metrics],
            "minutes": minutes,
            "trained": num_trained(tuned),
            "after": judged(model, kept_back()),
            "other names": with_other(model, OTHER_NAMES),
            "other rooms": with_other(model, OTHER_NAMES | OTHER_ROOMS),
            "misasked": misasked(model),
            "remembered": remembered(model),
        }

    return kept(KEPT / "main.json", find) | {"rate": RATE}


def results() -> dict:
    """All of it; each part is kept, so that a run that was stopped goes on."""
    found = {"before": before(), "by rule": by_rule(kept_back()), "main": long()}
    found["methods"] = {method: {f"{rate:g}": short(method, rate) for rate in rates} for method, rates in RATES.items()}
    best = {
        method: min(runs.values(), key=lambda run: run["loss"])["rate"] for method, runs in found["methods"].items()
    }
    found["another seed"] = {method: short(method, rate, seed=OTHER_SEED) for method, rate in best.items()}
    found["losses"] = {loss: short(MAIN, RATE, loss) for loss in LOSSES}
    settings = {"main": MAIN, "steps": STEPS, "batch": BATCH, "on the way": NUM_ON_THE_WAY}
    return found | {"settings": settings | {"short steps": SHORT_STEPS, "short batch": SHORT_BATCH}}
