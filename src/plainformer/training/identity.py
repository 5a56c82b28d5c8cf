"""What makes a training run that run, so that it goes on as itself or not at all (chapter on the decoder)."""

import dataclasses
import json
from collections.abc import Iterable

import jax

from plainformer.training.arrays import differences, digest, named_arrays, place_of, to_json
from plainformer.training.optimiser import TrainingConfig, num_warmup_steps

# Who reads each field of a configuration, so that another value would make another run: the step; or the optimiser or
# the schedule of `make_optimiser`, unless others are handed over; or none, as it changes no number of a step, or is
# when the run ends.
READ_BY = {
    "num_steps": None,
    "learning_rate": "schedule",
    "warmup_steps": "schedule",
    "optimiser": "optimiser",
    "schedule": "schedule",
    "decay_steps": None,
    "min_lr_ratio": "schedule",
    "weight_decay": "optimiser",
    "beta_1": "optimiser",
    "beta_2": "optimiser",
    "clip_norm": "optimiser",
    "accumulation_steps": "step",
    "precision": "step",
    "rematerialise": None,
    "seed": "step",
    "evaluate_every": None,
    "checkpoint_every": None,
    "max_to_keep": None,
    "patience": None,
}


def identity_of(model, frozen, first_batch, config: TrainingConfig, *, optimiser=None, schedule=None) -> dict:
    """What must be the same when a run goes on: the model, what of it is not trained, the data, the training."""
    parts = {"step"} | ({"optimiser"} if optimiser is None else set())
    parts |= {"schedule"} if optimiser is None and schedule is None else set()
    training = {name: value for name, value in plain_fields(config).items() if READ_BY.get(name, "step") in parts}
    if "warmup_steps" in training:
        training["warmup_steps"] = num_warmup_steps(config)
    return {
        "model": {"model": type(model).__name__, **plain_fields(getattr(model, "config", None))},
        "scales": scales_of(model),
        "training": training,
        "frozen": digest(named_arrays(frozen)),
        "first_batch": digest(named_arrays(first_batch)),
    }


def changes_of_a_run(then: dict, now: dict, arrays: dict, state: dict) -> list[str]:
    """What differs between two identities, and between a state that was saved, by its arrays, and one that is like it.

    Fields of the configuration that were not read then, or are not now, are left out.
    """
    read_by_both = [name for name in then["training"] if name in now["training"]]
    training = ({name: each["training"][name] for name in read_by_both} for each in (then, now))
    changes = changed_fields(then["model"], now["model"]) + changed_fields(*training)
    changes += other_scales(then, now["scales"])
    if then["first_batch"] != now["first_batch"]:
        changes.append("the first batch is another one now")
    parts = _changed_parts(arrays, state) if then["model"] == now["model"] else []
    if then["frozen"] != now["frozen"] and not parts:
        changes.append("what is not trained has other numbers now")
    changes += parts
    wrong = differences(arrays, state)
    return changes or ([wrong] if wrong else [])


def plain_fields(config) -> dict:
    """The fields of a configuration as a checkpoint gives them back: lists for tuples, dictionaries for dataclasses."""
    return json.loads(to_json(config)) if dataclasses.is_dataclass(config) else {}


def scales_of(model) -> dict[str, float]:
    """By its place what each adapter is multiplied by, which stands in no array and in no configuration."""

    def is_adapted(part) -> bool:
        return hasattr(part, "adapter_in") and hasattr(part, "scale")

    parts = jax.tree_util.tree_leaves_with_path(model, is_leaf=is_adapted)
    return {place_of(path): part.scale for path, part in parts if is_adapted(part)}


def other_scales(then: dict, now: dict[str, float]) -> list[str]:
    """What differs between the scales of adapters in an identity, if it has some, and those of a model."""
    before = then.get("scales")
    known = before if isinstance(before, dict) else {}  # a reader's own metadata may mean something else by it
    places = [place for place, scale in now.items() if known.get(place, scale) != scale]
    if not places:
        return []
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return [f"the scale of the adapter {places[0]}{more} was {known[places[0]]} and is {now[places[0]]}"]


def changed_fields(then: dict, now: dict) -> list[str]:
    """What differs between two configurations, those within by their own names."""
    changes = []
    for name in {**now, **then}:
        old, new = then.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            changes += [f"{name}.{change}" for change in changed_fields(old, new)]
        elif old != new:
            changes.append(f"{name} was {old} and is {new}")
    return changes


def _changed_parts(then: dict, now: dict) -> list[str]:
    """What else is trained, and what else the optimiser remembers, by the names of the arrays of two states."""
    (trained, remembered), (trained_now, remembered_now) = _parts(then), _parts(now)
    changes = []
    for names, change in (
        (trained - trained_now, "was trained and is not"),
        (trained_now - trained, "was not trained and is now"),
    ):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            changes.append(f"{min(names)}{more} {change}")
    if remembered != remembered_now:
        before, after = (", ".join(sorted(names)) or "nothing" for names in (remembered, remembered_now))
        changes.append(f"the optimiser is another one now, as it remembered {before}, and now {after}")
    return changes


def _parts(names: Iterable[str]) -> tuple[set[str], set[str]]:
    """What is trained, and what the optimiser remembers: `0.mu` for the averages `0.mu.bias` and `0.mu.weight`."""
    trained = {place for number, _, place in (name.partition(".") for name in names) if number == "0"}
    remembered = set()
    for number, *words in (name.split(".") for name in names):
        ends = [end for end in range(len(words)) if ".".join(words[end:]) in trained]
        if number == "1":
            remembered.add(".".join(words[: min(ends, default=len(words))]))
    return trained, remembered
