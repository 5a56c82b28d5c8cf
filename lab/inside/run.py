"""Find which parts of the machines of stories follow the lamp, and write what was found with a card.

Two stories differ in one word, who takes the lamp; both people leave, and the question is where it is. `make models`
runs it; `record.json` holds the numbers. Blocks and heads count from 0 here.
"""

import itertools
from collections.abc import Sequence
from functools import partial

import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.asked import PEOPLE
from lab.inside.side_by_side import facts_of_seeds, lines_of_seeds, of_seed
from lab.inside.study import CIRCUIT, FIRST, QUESTION, SHOWN, TAKER, TAKES, Study, laden, machine, pairs, share, summary
from lab.records import BUILD, kept, percent
from plainformer.models import control_labels, effect, heads_at, patch, probe_accuracy, silence

NEEDS = ("staircase",)
KEPT = BUILD / "inside"
MACHINES = {"seed 1": "decoder.1", "seed 0": "decoder.0", "seed 2": "decoder.2", "seed 1, a quarter": "positions.1"}
SEEDS = {f"seed {seed}": f"decoder.{seed}" for seed in range(3)}
# The tokens that matter in a story in which both carry something.
LADEN = {"first takes": 28, "second takes": 33, "first": 41, "second": 47}
# Which head marks a room, and which reads a room at the question.
MARKING = {
    "seed 1": ((2, 4), (3, 6)),
    "seed 0": ((1, 4), (2, 6)),
    "seed 2": ((1, 3), (1, 4)),
    "seed 1, a quarter": ((2, 4), (3, 6)),
}
HELD = {"paths": ("attention.heads", "feed_forward.output"), "paths through networks": ("attention.heads",)}
BY_NAMES = {"0.1": [(0, 1)], "1.0": [(1, 0)], "both": [(0, 1), (1, 0)]}
LEARNED = 400  # of the 576 stories, by a probe


def of_names() -> dict:
    """What heads 0.1 and 1.0 of the second machine move, by who takes the thing here and in the other run.

    Beside it how near the stories are to the mean over all, and how much head 0.1 looks at each of those who take.
    """
    study = Study("decoder.1")
    names = [f"{one}, {other}" for one, other in itertools.permutations(PEOPLE, 2)]  # the order of `pairs`
    runs = {"patched": (study.ours, study.source), "back": (study.theirs, study.seen)}
    found: dict = {}
    for name, heads in BY_NAMES.items():
        places, found[name] = heads_at(study.seen, heads), {}
        for way, (ids, source) in runs.items():
            said = patch(study.model, ids, places=places, source=source)
            moved = study.effect(said, back=way == "back")
            groups = zip(names, moved.reshape(len(names), -1), strict=True)
            found[name][way] = {who: summary(group) for who, group in groups}
            found[name][f"{way}, near the mean"] = share(abs(moved - moved.mean()) < 0.1)
    looks = study.seen["stack.blocks.0.attention.weights"][:, 1, TAKES, TAKER].reshape(len(PEOPLE), -1).mean(axis=1)
    return found | {"looks": {who: round(float(each), 3) for who, each in zip(PEOPLE, looks, strict=True)}}


def of_laden(stored: str, heads: tuple | None) -> dict:
    """Which rooms are named when both carry something: by the whole machine, and without the mark at a room."""
    model, words = machine(stored)
    found: dict = {"stories": len(laden())}
    for whose, thing in enumerate(("the first one's", "the other's")):
        told = laden(whose)
        ids = jnp.asarray([words.encode(story) for story, _, _ in told])
        rooms = np.array([words.encode(f"{aim} {third}") for _, aim, third in told])
        logits, seen = pf.look(model, ids)
        found[thing] = {"whole": rooms_named(logits, rooms)}
        if heads is None:
            continue
        (block, mark), (last, reader) = heads
        marks, reads = (seen[f"stack.blocks.{each}.attention.weights"] for each in (block, last))
        for room in ("first", "second"):
            at = LADEN[room]
            silent = silence(model, ids, places={f"stack.blocks.{block}.attention.heads": np.s_[:, mark, at]})
            found[thing] |= {
                f"without the mark at the {room} room": rooms_named(silent, rooms),
                f"{room} room reads its taker": round(float(marks[:, mark, at, LADEN[f"{room} takes"]].mean()), 3),
                f"question reads {room} room": round(float(reads[:, reader, -1, at].mean()), 3),
            }
    return found


def rooms_named(logits, rooms: np.ndarray) -> list[float]:
    """How often the likeliest answer is the room of the first one, and how often that of the other."""
    said = np.asarray(logits[:, -1].argmax(axis=-1))
    return [share(said == rooms[:, 0]), share(said == rooms[:, 1])]


def of_probes() -> list[dict]:
    """What a linear probe can tell of who took the thing, and of labels drawn for people and first room, by place."""
    study = Study("decoder.1")
    ids = jnp.concatenate([study.ours, study.theirs])
    order = np.random.default_rng(0).permutation(len(ids))
    taken = jnp.asarray(np.repeat([0, 1], len(study.ours))[order])
    _, kinds = np.unique(np.asarray(ids)[:, [1, 5, 7]], axis=0, return_inverse=True)
    found = []
    for at, depth in ((TAKES, 2), (FIRST, 2), (TAKES, 3), (FIRST, 3), (QUESTION, 3)):
        name = f"stack.blocks.{depth - 1}.output"
        rows = jnp.concatenate([study.seen[name], study.source[name]])[order, at]
        controls = [control_labels(jnp.asarray(kinds[order]), 2, seed=seed) for seed in range(5)]
        by_heart = np.mean([probe_accuracy(rows, labels, LEARNED) for labels in controls])
        accuracy = {"accuracy": probe_accuracy(rows, taken, LEARNED), "control": float(by_heart)}
        found.append({"at": at, "depth": depth} | {key: round(each, 3) for key, each in accuracy.items()})
    return found


# Reactions in which @ is the atom of the product that {} becomes.
REACTIONS = (
    "CC(C)S.CN(C)C=O.Fc1cccnc1{}.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1cccnc1@",
    "OB(O)c1ccccc1.Brc1ccc({})cc1>>c1ccc(-c2ccc(@)cc2)cc1",
    "CCN.O=C(Cl)c1ccc({})cc1>>CCNC(=O)c1ccc(@)cc1",
    "CC(=O)Cl.Nc1ccc({})cc1>>CC(=O)Nc1ccc(@)cc1",
    "CO.Cc1ccc({})cc1C(=O)O>>COC(=O)c1cc(@)ccc1C",
    "CCO.O=C(O)Cc1ccc({})cc1>>CCOC(=O)Cc1ccc(@)cc1",
    "C1CCNCC1.O=Cc1ccc({})cc1>>c1cc(@)ccc1CN1CCCCC1",
)


class Chemist:
    """Pairs of reactions that differ in one atom, which is hidden in the product, read by the chemist's model."""

    def __init__(self):
        folder = pf.pretrained.packaged_folder("rxnmapper")
        self.model, _ = pf.open_model(folder)
        self.tokenizer = pf.pretrained.SmilesTokenizer.in_folder(folder)
        cases = list(itertools.product(REACTIONS, itertools.permutations(("F", "Cl", "Br"), 2)))
        texts = [[text.format(atom).replace("@", "[MASK]") for atom in atoms] for text, atoms in cases]
        self.ours, self.theirs = (self.padded([pair[n] for pair in texts]) for n in (0, 1))
        self.hidden = np.asarray(self.ours == self.tokenizer.special["[MASK]"]).argmax(axis=1)
        self.atoms = np.array([[self.tokenizer.encode(atom)[1] for atom in atoms] for _, atoms in cases])

    def padded(self, texts: list[str]):
        """Reactions as ids, padded to the longest."""
        rows, pad = [self.tokenizer.encode(text) for text in texts], self.tokenizer.special["[PAD]"]
        longest = max(map(len, rows))
        return jnp.asarray([row + (longest - len(row)) * [pad] for row in rows])

    def read(self, ids, function=pf.look, **options):
        """What a function such as `patch` makes of the model on these reactions."""
        return function(self.model, ids, ids != self.tokenizer.special["[PAD]"], jnp.zeros_like(ids), **options)

    def margin(self, logits):
        """The logit of our atom minus that of the other, where it is hidden."""
        each = np.arange(len(logits))
        return logits[each, self.hidden, self.atoms[:, 0]] - logits[each, self.hidden, self.atoms[:, 1]]

    def measured(self) -> dict:
        """The effect of each head, of each in all blocks at once, and how often the atom is named without it."""
        (said, seen), (other, source) = self.read(self.ours), self.read(self.theirs)
        before, after = self.margin(said), self.margin(other)

        def patched(blocks, head):
            places = heads_at(seen, [(block, head) for block in blocks])
            logits = self.read(self.ours, patch, places=places, source=source)
            return np.asarray(effect(self.margin(logits), before, after))

        def named(head):
            places = heads_at(seen, [(block, head) for block in range(12)])
            logits = self.read(self.ours, silence, places=places)
            return share(logits[np.arange(len(logits)), self.hidden].argmax(axis=-1) == self.atoms[:, 0])

        alone = [[summary(patched([block], head))[0] for head in range(8)] for block in range(12)]
        together = [summary(patched(range(12), head)) for head in range(8)]
        right = [share(before > 0), share(after < 0)]
        silent = [named(head) for head in range(8)]
        return {"pairs": len(said), "right": right, "heads": alone, "together": together, "silent": silent}


def of_machine(name: str) -> dict:
    """Shares and maps of one machine; no map where it answers too few pairs."""
    study = Study(name)
    both = study.is_right[0] & study.is_right[1]
    found = {"right": [share(each) for each in study.is_right], "pairs": int(both.sum())}
    if both.sum() < 100:
        return found
    study.keep(np.flatnonzero(both))
    found["margins"] = [summary(np.asarray(each)) for each in (study.before, study.after)]
    found["stream"] = [study.of_stream(depth) for depth in range(5)]
    return found | study.of_heads()


def of_paths(hold: Sequence[str]) -> dict[str, list]:
    """The paths of the second machine, on every sixth pair."""
    return Study("decoder.1", stride=6).of_paths(hold)


def results() -> dict:
    """All that is recorded; what was found is kept under `build`, so that a run that was stopped goes on."""
    found: dict = {"pairs": len(pairs()), "words": list(SHOWN), "machines": {}}
    for name, stored in MACHINES.items():
        found["machines"][name] = kept(KEPT / f"{stored}.json", partial(of_machine, stored))
    for name, hold in HELD.items():
        found[name] = kept(KEPT / f"{name}.json", partial(of_paths, hold))
    found["probes"] = kept(KEPT / "probes.json", of_probes)
    found["chemist"] = kept(KEPT / "chemist.json", lambda: Chemist().measured())
    found["circuit"] = kept(KEPT / "circuit.json", lambda: Study("decoder.1").of_circuit())
    found["names"] = kept(KEPT / "names.json", of_names)
    found["seeds"] = {
        name: kept(KEPT / f"side-by-side-{stored}.json", partial(of_seed, stored)) for name, stored in SEEDS.items()
    }
    found["laden"] = {
        name: kept(KEPT / f"two-things-{stored}.json", partial(of_laden, stored, MARKING[name]))
        for name, stored in MACHINES.items()
    }
    return found


def lines_of_heads(found: dict) -> list[str]:
    """A line of the card for each head that turns an answer, or is needed."""
    lines = []
    for block, head in itertools.product(range(4), range(8)):
        (middle, low, high, _), back = found["patched"][block][head], found["back"][block][head][0]
        zero, mean = found["zero"][block][head], found["mean"][block][head]
        if abs(middle) > 0.2 or min(zero, mean) < 0.98:
            effect = f"{middle:.2f} ({low:.2f} to {high:.2f}) | {back:.2f}"
            lines.append(f"| {block}.{head} | {effect} | {zero:.0%} | {mean:.0%} |")
    return lines


def lines_of_paths(direct: dict, through: dict) -> list[str]:
    """A line for each path that turns an answer by a tenth, or more, directly or through networks."""
    lines = []
    for receiver in direct:
        both = [np.array(found[receiver]) for found in (direct, through)]
        for block, head in np.argwhere(np.abs(both).max(axis=0)[..., 0] >= 0.1):
            cells = [
                f"{found[block, head, 0]:.2f} ({found[block, head, 1]:.2f} to {found[block, head, 2]:.2f})"
                for found in both
            ]
            lines.append(f"| {block}.{head} | {receiver} | {' | '.join(cells)} |")
    return lines


def lines_of_laden(found: dict) -> list[str]:
    """A line of the card for each machine and question: right answers, marks, and right answers without them."""
    lines = []
    for (name, one), (whose, thing) in itertools.product(found.items(), enumerate(("the first one's", "the other's"))):
        asked, heads = one[thing], MARKING[name]
        right = [asked["whole"], *(asked[without] for without in WITHOUT if without in asked)]
        whole, *without = (f"{each[whose]:.0%}" for each in right)
        marks = ", ".join(f"{asked[mark]:.2f}" for mark in MARKS if mark in asked)
        head = f"{heads[0][0]}.{heads[0][1]}" if heads else "not known"
        lines.append(f"| {name} | {thing} | {whole} | {head} | {marks or '–'} | {', '.join(without) or '–'} |")
    return lines


def lines_of_names(found: dict) -> list[str]:
    """A line of the card for the people of each pair: what the heads move, there and back."""
    lines = []
    for who in found["both"]["patched"]:
        cells = [
            f"{found[heads][way][who][0]:.2f} ({found[heads][way][who][1]:.2f} to {found[heads][way][who][2]:.2f})"
            for way, heads in itertools.product(("patched", "back"), BY_NAMES)
        ]
        lines.append(f"| {who} | {' | '.join(cells)} |")
    return lines


PLACES = {TAKES: "takes", FIRST: "first room", QUESTION: "?"}


def lines_of_probes(found: dict) -> list[str]:
    """A line of the card for each place of a probe, with the effect of patching it."""
    lines = []
    for each in found["probes"]:
        patched = found["machines"]["seed 1"]["stream"][each["depth"]][each["at"] - TAKER][0]
        gained = each["accuracy"] - each["control"]
        lines.append(
            f"| {PLACES[each['at']]} | {each['depth']} | {each['accuracy']:.0%} | {each['control']:.0%} | "
            f"{100 * gained:.0f} points | {patched:.2f} |"
        )
    return lines


def chemist_words(found: dict) -> dict:
    """What the card says of the chemist's model."""
    block, head = np.unravel_index(np.argmax(found["heads"]), (12, 8))
    lines = [
        f"| {number} | {middle:.2f} ({low:.2f} to {high:.2f}) | {found['silent'][number]:.0%} |"
        for number, (middle, low, high, _) in enumerate(found["together"])
    ]
    alone = found["heads"][block][head]
    return {"reactions": found["pairs"], "best": f"{block}.{head}", "alone": alone, "chemist": "\n".join(lines)}


def paths_said(found: dict) -> dict[str, str]:
    """The median effect of each path of 0.2 and more, as a fact, with networks held and free."""
    texts, (held, free) = {}, (found[name] for name in HELD)
    for receiver in free:
        for block, head in np.argwhere(np.array(free[receiver])[..., 0] >= 0.2):
            name = f"paths.{block}.{head}.to.{receiver.replace(' ', '.')}"
            for way, senders in (("held", held), ("free", free)):
                texts[f"{name}.{way}"] = f"{senders[receiver][block][head][0]:.2f}"
    return texts


def facts(found: dict) -> dict[str, str]:
    """Numbers of pairs; of the second machine effects of heads and paths, and right answers with heads silent."""
    second, laden = found["machines"]["seed 1"], found["laden"]["seed 1"]
    texts = {"pairs": str(found["pairs"]), "laden.stories": str(laden["stories"])}
    texts["chemist.pairs"] = str(found["chemist"]["pairs"])
    for (block, head), way in itertools.product(CIRCUIT, ("patched", "back")):
        texts[f"heads.{block}.{head}.{way}"] = f"{second[way][block][head][0]:.2f}"
    texts["circuit.all_others_silent"] = percent(found["circuit"]["all others silent"])
    for name in ("the five silent", "the five silent, the other story", "the five silent, the same room in both"):
        texts[f"circuit.{name.replace(', ', '.')}"] = percent(found["circuit"][name])
    names = found["names"]["0.1"]
    texts["names.mean"] = f"{second['patched'][0][1][3]:.2f}"
    texts["names.near"] = percent(names["patched, near the mean"])
    for whose, asked in enumerate(("the first one's", "the other's")):
        for name, how in (("whole", "whole"), ("unmarked", WITHOUT[1])):
            texts[f"laden.{('first', 'other')[whose]}.{name}"] = percent(laden[asked][how][whose])
    (probe,) = (each for each in found["probes"] if each["at"] == QUESTION)
    texts["probes.question"] = percent(probe["accuracy"])
    return texts | paths_said(found) | facts_of_seeds(found["seeds"])


def card(found: dict) -> str:
    """What was done, and what came out."""
    tables = []
    for name, one in found["machines"].items():
        shares = " and ".join(f"{each:.0%}" for each in one["right"])
        head = f"**{name[0].upper()}{name[1:]}.** Right in {shares} of the stories, in both of {one['pairs']} pairs."
        tables.append(head)
        if "patched" in one:
            tables.append("\n".join([HEADS, *lines_of_heads(one)]))
    circuit, laden = found["circuit"], found["laden"]
    rest = ", ".join(f"{name} {share:.0%}" for name, share in circuit.items() if isinstance(share, float))
    return TEXT.format(
        pairs=found["pairs"],
        tables="\n\n".join(tables),
        paths="\n".join(lines_of_paths(*(found[name] for name in HELD))),
        rest=rest,
        five=circuit["the five patched"][0],
        learned=LEARNED,
        names="\n".join(lines_of_names(found["names"])),
        near=found["names"]["0.1"]["patched, near the mean"],
        probes="\n".join(lines_of_probes(found)),
        **chemist_words(found["chemist"]),
        seeds="\n".join(lines_of_seeds(found["seeds"])),
        stories=laden["seed 1"]["stories"],
        told="\n".join(lines_of_laden(laden)),
    )


HEADS = """| head | patched: median (tenths) | the other way | right, silent by zeros | right, by the mean |
|---|---|---|---|---|"""
MARKS = [f"{room} room reads its taker" for room in ("first", "second")]
WITHOUT = [f"without the mark at the {room} room" for room in ("first", "second")]
TEXT = """# Which heads follow the lamp

Of the three machines of `lab/staircase` that were trained to the end, and of the second of them after a quarter of the
steps (its row "and positions"), by `lab/inside/run.py`, which `make models` runs. The numbers stand in
`record.json`. Blocks and heads count from 0.

- **Stories.** {pairs} pairs that differ in one word, who takes a thing: all pairs of people, rooms to begin with and to
  go to, lamp and ball; both people leave, the first of the two first. The answer is measured by the logit of the first
  one's room minus that of the other's. Effects are given as median and first and last tenth over the pairs of which
  the machine answers both stories right.
- **Heads.** Each is patched at all tokens, from the other story into this one and back, and silenced by zeros and by
  its mean over both stories of all pairs, token by token. Heads with an effect above 0.2, or without which fewer
  than 98 % of the answers are right:

{tables}

- **Paths.** In the second machine, on every sixth pair, what each head tells queries, keys and values of heads 2.4 and
  3.6, and the output at the question; all other heads are held, and all networks, or no network. Those of 0.1 and more:

| from | to | networks held | networks free |
|---|---|---|---|
{paths}

- **The circuit.** Heads 0.0, 0.1, 1.0, 2.4 and 3.6 of the second machine: {rest}. Silent means the mean, as above.
  With all five patched the median effect is {five:.2f}.
- **Three machines side by side.** The marker is the head whose weights from the rooms to *takes* differ most between
  the two stories of a pair; the reader moves the margin most, patched at the question from stories in which the two
  rooms are exchanged. All pairs count, right or not. What they give to the room of the one who takes, and to the
  other's; and right answers in the 72 stories of `lab/staircase` in which another leaves, and in the same with the
  thing taken by the one who leaves last: as they are, with either head silent by its mean over the pairs, and with all
  that the reader gives to the two rooms turned to the one that is marked more, or less.

| machine | marker | reader | marks | reads | right | marker silent | reader silent | turned to the mark | turned away |
|---|---|---|---|---|---|---|---|---|---|
{seeds}

- **By names.** What heads 0.1 and 1.0 and both together move, by who takes the thing here and in the other run: median
  and tenths of 48 pairs each, from the other story into this one, and back. Within 0.1 of the mean of head 0.1 over all
  pairs lie {near:.0%} of them.

| here, there | 0.1 | 1.0 | both | 0.1, back | 1.0, back | both, back |
|---|---|---|---|---|---|---|
{names}

- **Two things.** In {stories} stories the other one takes something, too, and either the thing of the first one is
  asked for or the other's. Right answers; how strongly the first and the second room look, in the head that marks, at
  the verb by which their own people took something; and right answers with what this head puts out at the first room,
  and at the second, set to zeros. The head of the third machine is not known, since it was not searched.

| machine | asked for | right | head | looks | right without the mark at the first, at the second room |
|---|---|---|---|---|---|
{told}

- **Probes.** What logistic regression on the stream of the second machine tells of who took the thing, learned from
  {learned} of the 576 stories; the control task has a label drawn for each two people and first room; five draws.
  Beside them the median effect of patching the same row.

| token | blocks passed | right | control | selectivity | patched |
|---|---|---|---|---|---|
{probes}

- **The chemist's model.** The ALBERT of the package rxnmapper 0.4.3 (Schwaller et al., 2021), on {reactions} pairs of
  reactions: seven, in each of which one halogen of an educt is fluorine, chlorine or bromine, hidden in the product.
  Measured by the logit of the one less that of the other at the hidden atom. All are answered right. The head with the
  largest median effect alone is {best}, {alone:.2f}. The twelve blocks have the same numbers; a head in all of them:

| head, in all blocks | patched: median (tenths) | right, silent by zeros |
|---|---|---|
{chemist}

- **Limits.** One form of story; three seeds of one configuration; seven reactions.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
