"""Measure a published model of chemistry: usual mistakes of opening it, its heads as maps of atoms, one silenced.

No weights are kept; `record.json` holds what came out.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np

import plainformer as pf
from lab import chemist
from lab.records import BUILD, ends, kept, percent
from lab.smiles_graph import reaction_rewritten

KEPT = BUILD / "reactions"
WRITINGS, SEEDS = 8, (0, 1, 2)
SQUARE = ("query", "key", "value", "output")


def turned(model, names=SQUARE):
    """The square matrices as PyTorch has them, which fit as well."""
    arrays = pf.training.named_arrays(model)
    for name in arrays:
        if name.endswith(tuple(f"attention.{each}.weight" for each in names)):
            arrays[name] = arrays[name].T
    return pf.training.with_arrays(model, arrays)


def with_stack(model, **fields):
    """The same numbers in another stack."""
    config = dataclasses.replace(model.config, stack=dataclasses.replace(model.config.stack, **fields))
    skeleton = eqx.filter_eval_shape(pf.MaskedLanguageModel, config, key=jax.random.key(0))
    arrays = pf.training.named_arrays(model)
    wanted = pf.training.named_arrays(skeleton)
    last = {"encoder.stack.final_norm.scale": np.ones, "encoder.stack.final_norm.bias": np.zeros}
    missing = {name: last[name](config.stack.d_model, np.float32) for name in wanted if name not in arrays}
    return pf.training.with_arrays(skeleton, {name: arrays.get(name, missing.get(name)) for name in wanted})


def changed(model, name, change):
    """With one array changed."""
    arrays = pf.training.named_arrays(model)
    return pf.training.with_arrays(model, arrays | {name: change(arrays[name])})


TABLE, BLOCK = "encoder.stack.scheme.table", "encoder.stack.blocks.5.attention.query.weight"
MISTAKES: dict[str, Callable] = {
    "none": lambda model: model,
    "queries, keys, values, output not turned": turned,
    "output alone not turned": partial(turned, names=("output",)),
    "queries and keys exchanged": lambda model: exchanged(model),
    "GELU by its approximation with tanh": partial(with_stack, activation="gelu_tanh"),
    "ReLU for GELU": partial(with_stack, activation="relu"),
    "pre-norm for post-norm": partial(with_stack, norm_placement="pre"),
    "eps 1e-5 for 1e-12": partial(with_stack, norm_eps=1e-5),
    "eps 0.1 for 1e-12": partial(with_stack, norm_eps=0.1),
    "4 heads for 8": partial(with_stack, num_heads=4),
    "16 heads for 8": partial(with_stack, num_heads=16),
    "11 blocks for 12": partial(with_stack, num_layers=11),
    "13 blocks for 12": lambda model: one_more(model),
    "positions from 1": partial(changed, name=TABLE, change=lambda table: np.roll(table, -1, axis=0)),
    "no positions": partial(changed, name=TABLE, change=lambda table: 0 * table),
    "no norm of the embeddings": lambda model: eqx.tree_at(
        lambda model: model.encoder.embedding_norm, model, None, is_leaf=lambda part: part is None
    ),
    "one number of block 6 is 1 too large": partial(changed, name=BLOCK, change=lambda array: array.at[0, 0].add(1)),
    "one number of block 6 is 100 too large": partial(
        changed, name=BLOCK, change=lambda array: array.at[0, 0].add(100)
    ),
}


def exchanged(model):
    """Queries and keys in each other's place."""
    arrays = pf.training.named_arrays(model)
    names = {name: name.replace("query", "*").replace("key", "query").replace("*", "key") for name in arrays}
    return pf.training.with_arrays(model, {name: arrays[other] for name, other in names.items()})


def one_more(model):
    """The block once more."""
    blocks = model.encoder.stack.blocks
    return eqx.tree_at(lambda model: model.encoder.stack.blocks, model, (*blocks, blocks[0]))


def mistaken(name: str) -> dict:
    """What a mistake makes of the guesses at hidden tokens, and by how much it changes logits."""
    model = MISTAKES[name](chemist.chemist()[0])
    logits, right = (chemist.hidden_one_by_one(chemist.PUBLISHED[0], each)[0] for each in (model, None))
    return chemist.guessed(chemist.PUBLISHED, model) | {"largest": float(np.abs(logits - right).max())}


def silenced(heads: dict[int, list[int]]) -> dict:
    """What becomes of the guesses with heads silenced, by block."""
    replace = {f"encoder.stack.blocks.{layer}.attention.heads": Silent(tuple(which)) for layer, which in heads.items()}
    return chemist.guessed(chemist.PUBLISHED, None, replace)


@dataclasses.dataclass(frozen=True)
class Silent:
    """Nothing comes from these heads."""

    which: tuple[int, ...]

    def __call__(self, heads):
        return heads.at[..., list(self.which), :, :].set(0)


def mapped(kind: str, seed: int) -> dict:
    """Atoms mapped rightly in all reactions: as they are written, in other orders, or written from other atoms."""
    rng = np.random.default_rng(seed)
    total: dict[str, Any] = {}
    for text in pf.data.textbook_reactions().values():
        for _ in range(1 if kind == "as written" else WRITINGS):
            again = text if kind == "as written" else reaction_rewritten(text, rng, from_other_atoms=kind != "order")
            for name, number in chemist.judged(again).items():
                total[name] = total.get(name, 0) + number
    return {name: np.asarray(number).tolist() for name, number in total.items()}


def results() -> dict:
    """All of it, each part kept as soon as it is there."""
    every = range(12)
    silence = {f"head {head + 1}": {layer: [head] for layer in every} for head in range(8)}
    silence |= {f"head 6 of block {layer + 1}": {layer: [5]} for layer in every}
    kinds = [("as written", 0)] + [(kind, seed) for kind in ("order", "other atoms") for seed in SEEDS]
    return {
        "mistakes": {
            name: kept(KEPT / f"mistake {n}.json", partial(mistaken, name)) for n, name in enumerate(MISTAKES)
        },
        "silenced": {name: kept(KEPT / f"{name}.json", partial(silenced, which)) for name, which in silence.items()},
        "mapped": [
            {"kind": kind, "seed": seed} | kept(KEPT / f"{kind}-{seed}.json", partial(mapped, kind, seed))
            for kind, seed in kinds
        ],
        "textbook": kept(KEPT / "textbook.json", guessed_in_textbooks),
    }


def guessed_in_textbooks() -> dict:
    """The guesses in all textbook reactions."""
    texts = pf.data.textbook_reactions().values()
    return chemist.guessed([pf.pretrained.read_numbered(text).reaction for text in texts])


def tables(found: dict) -> dict[str, str]:
    """The lines of the card's three tables."""
    mistakes = "\n".join(
        f"| {name} | {each['right']} of {each['of']} | {each['surprise']:.3f} | {each['largest']:.3f} |"
        for name, each in found["mistakes"].items()
    )
    silenced = "\n".join(
        f"| {name} | {each['right']} of {each['of']} | {each['surprise']:.3f} |"
        for name, each in found["silenced"].items()
    )
    names = ("at random", "nearest", "in turn", "common pieces")
    rows = [
        [*(run[name] for name in names), run["heads"][10][5], run["heads"][10][2], run["any element"][10][5]]
        for run in found["mapped"]
    ]
    mapped = "\n".join(
        f"| {run['kind']}, seed {run['seed']} | "
        + " | ".join(f"{100 * each / run['atoms']:.1f}" for each in row)
        + " |"
        for run, row in zip(found["mapped"], rows, strict=True)
    )
    return {"mistakes": mistakes, "silenced": silenced, "mapped": mapped}


def facts(found: dict) -> dict[str, str]:
    """How many hidden tokens each mistake and each silenced head costs, and what is mapped of the atoms."""
    none = found["mistakes"]["none"]
    costs = {
        f"{part}.{name}": none["right"] - each["right"]
        for part in ("mistakes", "silenced")
        for name, each in found[part].items()
    }
    texts = {f"{name}.cost": str(cost) for name, cost in costs.items()}
    heads = sorted(none["right"] - found["silenced"][f"head {head + 1}"]["right"] for head in range(8))
    one_block = [each["right"] for name, each in found["silenced"].items() if "block" in name]
    texts |= {"tokens": str(none["of"]), "silenced.next.cost": str(heads[-2])}
    texts["silenced.one_block.right"] = str(min(one_block))
    return texts | shares_of_atoms(found) | atoms_as_written(found)


def shares_of_atoms(found: dict) -> dict[str, str]:
    """Per cent of the atoms mapped rightly, in the mean of the seeds and at the ends: by comparing texts and by heads.

    Heads are those of block 11; with molecules written from other atoms, the best block of head 6 for each seed, too.
    """
    texts: dict[str, str] = {}
    for kind in ("as written", "order", "other atoms"):
        runs = [run for run in found["mapped"] if run["kind"] == kind]
        counts = {
            "common_pieces": [run["common pieces"] for run in runs],
            "head_6": [run["heads"][10][5] for run in runs],
            "head_3": [run["heads"][10][2] for run in runs],
            "any_element": [run["any element"][10][5] for run in runs],
        }
        for what, of_seeds in counts.items():
            name = f"{kind}.{what}"
            shares = [100 * count / run["atoms"] for count, run in zip(of_seeds, runs, strict=True)]
            texts |= {name: f"{np.mean(shares):.0f}"} | ends(name, shares, ".0f")
    others = [run for run in found["mapped"] if run["kind"] == "other atoms"]
    best = {f"other_atoms.head_6.best_block.{run['seed']}": np.argmax(run["heads"], axis=0)[5] + 1 for run in others}
    return texts | {name: str(block) for name, block in best.items()}


def atoms_as_written(found: dict) -> dict[str, str]:
    """Atoms mapped rightly in reactions as they are written, head 6 beside its neighbours, and head 3 at its best."""
    (run,) = (run for run in found["mapped"] if run["kind"] == "as written")
    heads = np.array(run["heads"])
    numbers = {
        "atoms": run["atoms"],
        "head_6.right": heads[10, 5],
        "head_6.missed": run["atoms"] - heads[10, 5],
        "head_6.neighbours.apart": np.ptp(heads[6:, 5]),
        "common_pieces.right": run["common pieces"],
        "head_3.best_block": heads[:, 2].argmax() + 1,
    }
    texts = {f"as_written.{name}": str(number) for name, number in numbers.items()}
    return texts | {"as_written.head_3.best": percent(heads[:, 2].max() / run["atoms"])}


def card(found: dict) -> str:
    """What was done, and what came out."""
    lines, textbook = tables(found), found["textbook"]
    return f"""# The chemist's model: mistakes in opening it, its heads as maps, and one silenced

The published model of the package rxnmapper 0.4.3 (MIT; Schwaller et al. 2021): an ALBERT of twelve times one block.
Nothing was trained. The numbers stand in `record.json`; `make models ONLY=reactions` measures them again.

- **Mistakes.** Each token of the two reactions in the README of rxnmapper hidden alone: how many are found, their mean
  surprise in nats, and the largest difference of a logit (first reaction) from the right model. In all
  {len(pf.data.textbook_reactions())} textbook reactions the right model finds {textbook["right"]} of {textbook["of"]}.

| mistake | found | nats | largest difference |
|---|---|---|---|
{lines["mistakes"]}

- **Silenced.** The same with the output of heads set to zero, in all blocks or in one:

| silenced | found | nats |
|---|---|---|
{lines["silenced"]}

- **Maps.** Atoms mapped rightly in the textbook reactions, in per cent, as written; with the molecules in an order
  drawn at random; and with each molecule written from an atom drawn at random, eight times each:

| writing | at random | nearest | in turn | common pieces | head 6 of block 11 | head 3 | head 6, any element |
|---|---|---|---|---|---|---|---|
{lines["mapped"]}

- **Knobs turned.** The order of molecules, the atom that a molecule is written from, seeds of both, all blocks and
  heads (in the record), the element restricted or not, mistakes small and large.
- **Limits.** The reactions were chosen by us, are short, and are written with what leaves or stays in a natural order.
- **Licence.** The numbers are under Apache-2.0, as the code; the model is MIT, and nothing of it is stored here.
"""
