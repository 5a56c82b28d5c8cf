"""How well a model answers questions whose answers were not trained on, and what it still knows besides."""

from collections import Counter
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.figures.chatting import QUESTIONS
from lab.smollm2_answers.questions import FORM, LENGTH, Question, answer_ids, last_named, prompt, smollm2, trained_on
from plainformer.data.little_world import ROOMS

AT_ONCE, NUM_SHOTS, NUM_WRITTEN, PAGE, NUM_PAGES = 20, 3, 24, 128, 32
LINE_BREAK = 198  # the token behind "assistant", after which the answer begins


@eqx.filter_jit
def read(model, windows: pf.data.PaddedWindows, rooms: jax.Array):
    """At each place the surprise at the target, in nats, the likeliest token, and the likeliest of the rooms."""
    log_probs = jax.nn.log_softmax(model(windows.inputs))
    of_targets = jnp.take_along_axis(log_probs, windows.targets[..., None], axis=-1)[..., 0]
    return -of_targets, log_probs.argmax(axis=-1), log_probs[..., rooms].argmax(axis=-1)


def judged(model, questions: list[Question], prompts: list[list[int]] | None = None, length: int = LENGTH) -> dict:
    r"""What the model makes of the wanted answers, each read at once behind its prompt.

    Greedy writing gives the wanted answer just where the likeliest token is the wanted one at each of its places.

    Returns:
        `loss`, in nats per token of the answers; the shares of answers that are `right` and end, of those that begin
        *In the* and a room, `form`, of those that end behind their full stop, `ends`, and of those whose `room` is the
        likeliest of the four behind *In the*; and `kinds`, of the latter, by kind of question.
    """
    prompts = [prompt(each.text) for each in questions] if prompts is None else prompts
    texts = [ids + answer_ids(each.room) for ids, each in zip(prompts, questions, strict=True)]
    windows = pf.models.answer_windows(texts, LINE_BREAK, length)
    names = sorted({each.room for each in questions})
    rooms = np.array([answer_ids(name)[2] for name in names])  # behind "In the"
    found = [
        read(model, jax.tree.map(lambda array, i=i: array[i : i + AT_ONCE], windows), jnp.asarray(rooms))
        for i in range(0, len(texts), AT_ONCE)
    ]
    surprise, likeliest, room = (np.concatenate(each) for each in zip(*found, strict=True))
    counts, targets = np.asarray(windows.is_token), np.asarray(windows.targets)
    places = [np.flatnonzero(row) for row in counts]
    hit = likeliest == targets
    chosen = [
        names[room[row, place[2]]] == each.room for row, (place, each) in enumerate(zip(places, questions, strict=True))
    ]
    form = [hit[row, place[:2]].all() and likeliest[row, place[2]] in rooms for row, place in enumerate(places)]
    return {
        "loss": round(float(surprise[counts].mean()), 4),
        "right": share(hit[row, place].all() for row, place in enumerate(places)),
        "form": share(form),
        "ends": share(hit[row, place[-1]] for row, place in enumerate(places)),
        "room": share(chosen),
        "kinds": {
            kind: share(right for right, each in zip(chosen, questions, strict=True) if each.kind == kind)
            for kind in sorted({each.kind for each in questions})
        },
    }


def likeliest_rooms(model, questions: list[Question]) -> list[str]:
    """The room of the four that each answer would most likely name behind *In the*."""
    texts = [prompt(each.text) + answer_ids(each.room) for each in questions]
    windows = pf.models.answer_windows(texts, LINE_BREAK, LENGTH)
    places = windows.is_token.argmax(axis=1) + 2
    logits = model(windows.inputs)[jnp.arange(len(texts)), places]
    first = jnp.asarray([answer_ids(room)[2] for room in ROOMS])
    return [ROOMS[i] for i in logits[:, first].argmax(axis=-1)]


def share(cases) -> float:
    """The share of cases that hold."""
    return round(float(np.mean([*cases])), 4)


def written(model, prompts: list[list[int]], num_tokens: int = NUM_WRITTEN) -> list[str]:
    """What the model answers, greedily, up to the token that ends it."""
    _, tokenizer = smollm2()
    found = pf.generate(model, prompts, num_tokens, temperature=0, stop_tokens=[tokenizer.end], tokenizer=tokenizer)
    return [str(each.text) for each in found]


def in_own_words(model, questions: list[Question]) -> dict:
    """The share of free answers that name the right room and no other, and the first three answers."""
    texts = [
        text
        for i in range(0, len(questions), AT_ONCE)
        for text in written(model, [prompt(each.text) for each in questions[i : i + AT_ONCE]])
    ]
    named = [{room for room in ROOMS if room in text} for text in texts]
    right = [rooms == {each.room} for rooms, each in zip(named, questions, strict=True)]
    return {"right": share(right), "texts": texts[:3]}


def with_instruction(questions: list[Question]) -> list[list[int]]:
    """Prompts that say which form is wanted, by an example of another room."""
    return [prompt(f"{each.text} Answer in the form: In the attic.") for each in questions]


def with_examples(questions: list[Question]) -> list[list[int]]:
    """Prompts in which the user has asked three questions before, and got the wanted answers."""
    before = []
    for each in trained_on()[:NUM_SHOTS]:
        before += [{"role": "user", "content": each.text}, {"role": "assistant", "content": FORM.format(each.room)}]
    _, tokenizer = smollm2()
    return [tokenizer.encode_conversation([*before, {"role": "user", "content": each.text}]) for each in questions]


def by_rule(questions: list[Question]) -> dict[str, float]:
    """The shares of answers that are right if one says the commonest answer, or the room that was named last."""
    ((common, _),) = Counter(each.room for each in trained_on()).most_common(1)
    return {
        "the commonest answer": share(each.room == common for each in questions),
        "the room named last": share(last_named(each.text) == each.room for each in questions),
    }


@cache
def manual() -> pf.data.Windows:
    """Pages of Python's own manual, of the part that the book's decoders were not trained on."""
    _, held_out = pf.data.python_reference_splits()
    ids = np.asarray(smollm2()[1].encode(held_out)[: NUM_PAGES * (PAGE + 1)]).reshape(NUM_PAGES, PAGE + 1)
    return pf.data.Windows(jnp.asarray(ids[:, :-1]), jnp.asarray(ids[:, 1:]))


def remembered(model) -> dict:
    """What it knew before: nats per token of the manual, and answers to questions of a child."""
    loss = eqx.filter_jit(pf.training.next_token_loss)
    parts = [loss(model, jax.tree.map(lambda array, i=i: array[i : i + 8], manual())) for i in range(0, NUM_PAGES, 8)]
    answers = written(model, [prompt(question) for question in QUESTIONS], 12)
    return {"manual": round(float(np.mean(parts)), 4), "answers": dict(zip(QUESTIONS, answers, strict=True))}
