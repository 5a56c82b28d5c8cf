"""Three machines side by side: which head marks a room, which reads one at the question, and what each is worth."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.asked import ROOMS, WRONG, questions
from lab.inside.study import FIRST, LATER, QUESTION, SECOND, SHOWN, TAKER, TAKES, Study, is_heads, patched_row, share
from lab.records import percent
from plainformer.models import heads_at, patch, silence

ROOMS_AT, QUESTION_AT = jnp.array([FIRST, SECOND]), jnp.array([QUESTION])
BLOCKS, HEADS = 4, 8


@eqx.filter_jit
def patched_at(model: pf.Decoder, ids, source: dict, head, at):
    """Logits with what one head puts out at some tokens as it is in another run."""
    return patch(model, ids, places=dict.fromkeys(source, np.s_[:, head, at]), source=source)


class SideBySide:
    """All pairs of stories, right or not, and those of the chapter on the decoder in which another leaves."""

    def __init__(self, stored: str, stride: int = 1):
        self.study = study = Study(stored, stride)
        self.model = study.model
        self.exchanged = study.ours.at[:, ROOMS_AT].set(study.ours[:, ROOMS_AT[::-1]])
        kinds, encode = questions(), study.words.encode
        self.stories = jnp.asarray([encode(story) for story in kinds["then another leaves"]])
        self.twins = self.stories.at[:, TAKER].set(self.stories[:, LATER])  # in which the other takes the thing
        answers = zip(kinds["then another leaves"].values(), kinds[WRONG].values(), strict=True)
        self.rooms = np.array([encode(f"{first} {second}") for first, second in answers])

    def moved(self, logits) -> jax.Array:
        """By how much the margin of each pair moves from our room to the other's."""
        return self.study.before - self.study.margin(logits)

    def of_heads(self, source: dict, at) -> np.ndarray:
        """By how much each head moves the margin, patched at these tokens: a mean over all pairs."""
        names = filter(is_heads, source)
        said = partial(patched_at, self.model, self.study.ours)
        return np.array(
            [
                [float(self.moved(said({name: source[name]}, head, at)).mean()) for head in range(HEADS)]
                for name in names
            ]
        )

    def of_stream(self) -> list[list[float]]:
        """In what share of the pairs the other room ranks higher only by a patch of the stream at a token."""
        was_ours = np.asarray(self.study.before > 0)
        found = []
        for name in ["stack.input", *(f"stack.blocks.{block}.output" for block in range(BLOCKS))]:
            source = {name: self.study.source[name]}
            said = [patched_row(self.model, self.study.ours, source, jnp.asarray(at)) for at in SHOWN]
            found.append([share(was_ours & np.asarray(self.study.margin(each) < 0)) for each in said])
        return found

    def shares(self, read) -> list[list[float]]:
        """How often the first one's room and the other's are named, in the stories and in their twins."""
        said = [np.asarray(read(ids)[:, -1].argmax(axis=-1)) for ids in (self.stories, self.twins)]
        return [[share(each == self.rooms[:, room]) for room in (0, 1)] for each in said]

    def looks(self, head: tuple[int, int], at: int, to: int) -> list[float]:
        """What weight a head gives on average from one token to another, in the pairs and with the other taking it."""
        name = f"stack.blocks.{head[0]}.attention.weights"
        runs = (seen[name] for seen in (self.study.seen, self.study.source))
        return [round(float(weights[:, head[1], at, to].mean()), 3) for weights in runs]

    def told_apart(self) -> np.ndarray:
        """By how much each head looks more at *takes* from the room of the one who takes: a mean over both rooms."""
        differ = []
        for block in range(BLOCKS):
            name = f"stack.blocks.{block}.attention.weights"
            ours, theirs = (
                seen[name][:, :, ROOMS_AT, TAKES].mean(axis=0) for seen in (self.study.seen, self.study.source)
            )
            differ.append(((ours - theirs) * jnp.array([1, -1])).mean(axis=1))
        return np.array(differ)

    def turned(self, ids, marker: tuple[int, int], reader: tuple[int, int], *, to_marked: bool) -> jax.Array:
        """Logits when all that the reader gives to the two rooms goes to the one that is marked more, or less."""
        _, seen = pf.look(self.model, ids)
        marks = seen[f"stack.blocks.{marker[0]}.attention.weights"][:, marker[1], ROOMS_AT, TAKES]
        chosen = marks.argmax(axis=1) if to_marked else marks.argmin(axis=1)
        name = f"stack.blocks.{reader[0]}.attention.weights"
        row = seen[name][:, reader[1], QUESTION]
        given = row[:, ROOMS_AT].sum(axis=1, keepdims=True)
        turned = row.at[:, ROOMS_AT].set(jax.nn.one_hot(chosen, 2) * given)
        source = {name: seen[name].at[:, reader[1], QUESTION].set(turned)}
        return patch(self.model, ids, places={name: np.s_[:, reader[1], QUESTION]}, source=source)

    def by_hall(self, marker: tuple[int, int], reader: tuple[int, int]) -> dict[str, dict]:
        """What the two heads do in pairs in which one of the two goes to the hall, and in all others."""
        study, exchanged = self.study, self.study.look(self.exchanged)
        has_hall = (np.asarray(study.words.tokens)[study.rooms] == "hall").any(axis=1)
        ours, theirs = study.is_right
        marks = study.seen[f"stack.blocks.{marker[0]}.attention.weights"][:, marker[1], FIRST, TAKES]
        name = f"stack.blocks.{reader[0]}.attention.heads"
        said = patched_at(self.model, study.ours, {name: exchanged[name]}, reader[1], QUESTION_AT)
        numbers = {
            "right": np.mean([ours, theirs], axis=0),
            "the same room in both": ours != theirs,
            "marks": marks,
            "moved by the reader": self.moved(said),
        }
        groups = {"with the hall": has_hall, "without": ~has_hall}
        return {
            group: {name: round(float(np.asarray(each)[chosen].mean()), 3) for name, each in numbers.items()}
            for group, chosen in groups.items()
        }

    def read_by_room(self, reader: tuple[int, int]) -> dict[str, float]:
        """What the reader gives on average to the room of the one who takes the thing, by room."""
        reads = self.study.seen[f"stack.blocks.{reader[0]}.attention.weights"][:, reader[1], QUESTION, FIRST]
        went_to = np.asarray(self.study.words.tokens)[self.study.rooms[:, 0]]
        return {room: round(float(reads[went_to == room].mean()), 3) for room in ROOMS}


def largest(numbers: np.ndarray) -> tuple[int, int]:
    """Block and head of the number farthest from 0."""
    block, head = np.unravel_index(np.abs(numbers).argmax(), numbers.shape)
    return int(block), int(head)


def of_seed(stored: str) -> dict:
    """The two heads of a machine, what they look at, and what it answers when they are changed.

    The marker looks at *takes* more than any other head does from the room of the one who takes. The reader moves the
    answer more than any other head does, patched at the question from stories in which the two rooms are exchanged.
    """
    both = SideBySide(stored)
    study = both.study
    marking, reading = both.of_heads(study.source, ROOMS_AT), both.of_heads(study.look(both.exchanged), QUESTION_AT)
    marker, reader = largest(both.told_apart()), largest(reading)
    found = {"whole": both.shares(both.model)}
    for name, heads in {"marker": [marker], "reader": [reader]}.items():
        places = heads_at(study.seen, heads)
        found[f"{name} silent"] = both.shares(partial(silence, both.model, places=places, instead=study.average()))
    for name, to_marked in {"reader turned to the mark": True, "reader turned away": False}.items():
        found[name] = both.shares(partial(both.turned, marker=marker, reader=reader, to_marked=to_marked))
    rooms = {"first": FIRST, "second": SECOND}
    return {
        "stream": both.of_stream(),
        "marking": marking.round(3).tolist(),
        "reading": reading.round(3).tolist(),
        "told apart": both.told_apart().round(3).tolist(),
        "marker": marker,
        "reader": reader,
        "marks": {name: both.looks(marker, at, TAKES) for name, at in rooms.items()},
        "reads": {name: both.looks(reader, QUESTION, at) for name, at in rooms.items()},
        "reads by room": both.read_by_room(reader),
        "by hall": both.by_hall(marker, reader),
        "named": found,
    }


def own_and_other(looks: dict[str, list[float]]) -> tuple[float, float]:
    """A weight at the room of the one who takes, and at the other's, each a mean over both rooms."""
    (first, not_first), (not_second, second) = looks["first"], looks["second"]
    return (first + second) / 2, (not_first + not_second) / 2


CHANGES = {
    "whole": "whole",
    "marker silent": "marker_silent",
    "reader silent": "reader_silent",
    "reader turned to the mark": "turned",
    "reader turned away": "turned_away",
}


def facts_of_seeds(found: dict[str, dict]) -> dict[str, str]:
    """Right answers of each machine as its two heads are changed, what they look at, and what patches there move."""
    texts = {}
    for seed, each in enumerate(found.values()):
        name = f"seeds.{seed}"
        for what, fact in CHANGES.items():
            texts[f"{name}.{fact}"] = percent(each["named"][what][0][0])
        own, other = own_and_other(each["marks"])
        texts |= {f"{name}.marks.own": f"{own:.2f}", f"{name}.marks.other": f"{other:.2f}"}
        texts[f"{name}.at_the_rooms"] = f"{np.abs(each['marking']).max():.1f}"
    first, second, third = found.values()
    others = [weight for room, weight in first["reads by room"].items() if room != "hall"]
    return texts | {
        "seeds.0.reads.hall": f"{first['reads by room']['hall']:.2f}",
        "seeds.0.reads.others": f"{max(others):.2f}",
        "seeds.0.hall.right": percent(first["by hall"]["with the hall"]["right"]),
        "seeds.0.no_hall.the_same": percent(first["by hall"]["without"]["the same room in both"]),
        "seeds.1.reads.own": f"{own_and_other(second['reads'])[0]:.2f}",
        "seeds.2.reads.last": f"{np.mean(third['reads']['second']):.2f}",
    }


def lines_of_seeds(found: dict[str, dict]) -> list[str]:
    """A line of the card for each machine: its two heads, what they look at, and right answers as they are changed."""
    lines = []
    for name, each in found.items():
        heads = (".".join(map(str, each[part])) for part in ("marker", "reader"))
        looks = (" / ".join(f"{weight:.2f}" for weight in own_and_other(each[part])) for part in ("marks", "reads"))
        right = (f"{each['named'][what][0][0]:.0%}, {each['named'][what][1][1]:.0%}" for what in CHANGES)
        lines.append(f"| {name} | {' | '.join([*heads, *looks, *right])} |")
    return lines
