"""Pairs of stories that differ in who takes the lamp, and what one machine does when parts of it are changed."""

import itertools
from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.asked import PEOPLE, ROOMS
from plainformer.models import effect, heads_at, mean_run, patch, patch_path, silence

# The tokens that matter in a story of two leavers; LATER is the one who leaves last, FIRST and SECOND are rooms.
TAKER, TAKES, FIRST, LATER, SECOND, QUESTION = 20, 21, 29, 31, 35, 41
SHOWN = range(TAKER, QUESTION + 1)
CIRCUIT = [(0, 0), (0, 1), (1, 0), (2, 4), (3, 6)]  # of the second machine


def machine(name: str) -> tuple[pf.Decoder, pf.Vocabulary]:
    """A stored machine, such as `"decoder.1"`, and its words."""
    model, words = pf.load_pretrained("stories")
    own = [(key, value) for key, value in pf.data.load_weights("machines").items() if key.startswith(f"{name}.")]
    arrays = {key.removeprefix(f"{name}."): jnp.asarray(value, jnp.float32) for key, value in own}
    return pf.training.with_arrays(model, arrays), words


def pairs() -> list[tuple[str, str, str, str]]:
    """Stories in which the one takes the thing, and the other; where the one goes, and the other."""
    told = []
    for (one, other), (start, aim, third), thing in itertools.product(
        itertools.permutations(PEOPLE, 2), itertools.permutations(ROOMS, 3), ("lamp", "ball")
    ):
        here = " . ".join(f"{each} is in the {start}" for each in (one, other, f"the {thing}"))
        leave = f"{one} goes to the {aim} . {other} goes to the {third} . where is the {thing} ?"
        ours, theirs = (f". {here} . {who} takes the {thing} . {leave}" for who in (one, other))
        told.append((ours, theirs, aim, third))
    return told


def laden(whose: int = 0) -> list[tuple[str, str, str]]:
    """Stories in which the other takes something, too, and the one's thing (0) or the other's (1) is asked for.

    Beside each story where the one goes, and the other.
    """
    told = []
    for (one, other), (start, aim, third), things in itertools.product(
        itertools.permutations(PEOPLE, 2), itertools.permutations(ROOMS, 3), itertools.permutations(("lamp", "ball"))
    ):
        here = " . ".join(f"{each} is in the {start}" for each in (one, other, *(f"the {thing}" for thing in things)))
        take = f"{one} takes the {things[0]} . {other} takes the {things[1]}"
        leave = f"{one} goes to the {aim} . {other} goes to the {third} . where is the {things[whose]} ?"
        told.append((f". {here} . {take} . {leave}", aim, third))
    return told


def is_heads(name: str) -> bool:
    """Whether an array holds what heads put out."""
    return name.endswith("attention.heads")


@eqx.filter_jit
def patched_row(model: pf.Decoder, ids, source: dict, at):
    """Logits with the stream at one token as it is in another run."""
    return patch(model, ids, places=dict.fromkeys(source, np.s_[:, at]), source=source)


@eqx.filter_jit
def patched_head(model: pf.Decoder, ids, source: dict, head):
    """Logits with what one head puts out as it is in another run."""
    return patch(model, ids, places=dict.fromkeys(source, np.s_[:, head]), source=source)


class Study:
    """Pairs of stories, read by one machine, as far as it answers both."""

    def __init__(self, name: str, stride: int = 1):
        self.model, self.words = machine(name)
        told = pairs()[::stride]
        self.ours, self.theirs = (jnp.asarray([self.words.encode(pair[n]) for pair in told]) for n in (0, 1))
        self.rooms = np.array([self.words.encode(f"{aim} {third}") for _, _, aim, third in told])
        self.seen, self.source = self.look(self.ours), self.look(self.theirs)
        self.before, self.after = self.margin(self.model(self.ours)), self.margin(self.model(self.theirs))
        self.is_right = [np.asarray(self.before > 0), np.asarray(self.after < 0)]

    def look(self, ids) -> dict:
        """What is seen in the run on these stories."""
        return eqx.filter_jit(pf.look)(self.model, ids)[1]

    def keep(self, chosen: np.ndarray) -> None:
        """Go on with these pairs alone."""
        self.ours, self.theirs, self.rooms = self.ours[chosen], self.theirs[chosen], self.rooms[chosen]
        self.before, self.after = self.before[chosen], self.after[chosen]
        self.seen, self.source = ({key: x[chosen] for key, x in seen.items()} for seen in (self.seen, self.source))

    def margin(self, logits) -> jax.Array:
        """The logit of the first room minus that of the second, at the question."""
        each = np.arange(len(logits))
        return logits[each, -1, self.rooms[:, 0]] - logits[each, -1, self.rooms[:, 1]]

    def effect(self, logits, *, back: bool = False) -> np.ndarray:
        """How far each answer was moved to that of the other story."""
        ends = (self.after, self.before) if back else (self.before, self.after)
        return np.asarray(effect(self.margin(logits), *ends))

    def of_stream(self, depth: int) -> list[list[float]]:
        """What patching the stream at each token does, before the first block or after a block."""
        name = "stack.input" if depth == 0 else f"stack.blocks.{depth - 1}.output"
        source = {name: self.source[name]}
        return [summary(self.effect(patched_row(self.model, self.ours, source, jnp.asarray(at)))) for at in SHOWN]

    def average(self) -> dict:
        """What heads put out on average over both stories of all pairs, at each token."""
        both = {name: jnp.concatenate([x, self.source[name]]) for name, x in self.seen.items() if is_heads(name)}
        return mean_run(both)

    def of_heads(self) -> dict[str, list]:
        """What each head does: patched there and back, and silent, by zeros and by the mean."""
        average = self.average()
        found: dict[str, list] = {"patched": [], "back": [], "zero": [], "mean": []}
        for name in filter(is_heads, self.seen):
            ours, theirs, mean = ({name: run[name]} for run in (self.seen, self.source, average))
            zeros = {name: jnp.zeros_like(self.seen[name])}
            runs = {"patched": (self.ours, theirs), "back": (self.theirs, ours)}
            runs |= {"zero": (self.ours, zeros), "mean": (self.ours, mean)}
            for kind, (ids, source) in runs.items():
                said = [patched_head(self.model, ids, source, jnp.asarray(head)) for head in range(8)]
                if kind in ("zero", "mean"):
                    found[kind].append([share(self.margin(each) > 0) for each in said])
                else:
                    found[kind].append([summary(self.effect(each, back=kind == "back")) for each in said])
        return found

    def of_paths(self, hold: Sequence[str]) -> dict[str, list]:
        """What each earlier head tells two heads of the circuit, by queries, keys and values, and the output."""
        parts = itertools.product(CIRCUIT[-2:], ("queries", "keys", "values"))
        receivers = {f"{head[0]}.{head[1]} {part}": heads_at(self.seen, [head], part) for head, part in parts}
        receivers["output"] = {"stack.output": np.s_[:, -1:]}
        found = {}
        for name, receiver in receivers.items():
            senders = itertools.product(range(4 if name == "output" else int(name[0])), range(8))
            path = partial(patch_path, self.model, self.ours, receiver=receiver, source=self.source, hold=hold)
            told = [self.effect(path(sender=heads_at(self.seen, [sender]))) for sender in senders]
            found[name] = np.array([summary(each) for each in told]).reshape(-1, 8, 4).tolist()
        return found

    def of_circuit(self) -> dict:
        """How often the answer is right with few heads, or turned by few."""
        instead = self.average()
        others = [head for head in itertools.product(range(4), range(8)) if head not in CIRCUIT]
        found: dict = {}
        ranked = {}
        for name, heads in {"the five silent": CIRCUIT, "all others silent": others}.items():
            places = heads_at(self.seen, heads)
            for story, ids, sign in (("", self.ours, 1), (", the other story", self.theirs, -1)):
                margins = self.margin(silence(self.model, ids, places=places, instead=instead))
                found[name + story] = share(sign * margins > 0)
                ranked[name + story] = np.asarray(margins > 0)
        for_both = ranked["the five silent"] == ranked["the five silent, the other story"]
        found["the five silent, the same room in both"] = share(for_both)
        turned = patch(self.model, self.ours, places=heads_at(self.seen, CIRCUIT), source=self.source)
        found["the five patched"] = summary(self.effect(turned))
        return found


def share(is_so) -> float:
    """How often it is so."""
    return round(float(np.mean(np.asarray(is_so))), 4)


def summary(numbers: np.ndarray) -> list[float]:
    """Median, first and last tenth, and mean."""
    return [*np.quantile(numbers, [0.5, 0.1, 0.9]).round(3).tolist(), round(float(numbers.mean()), 3)]
