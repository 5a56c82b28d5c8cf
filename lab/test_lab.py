"""The recorded runs: the loop finds every one, and cards, settings, sizes and rates are those that were recorded."""

import dataclasses
import itertools
import json
import re
from concurrent.futures import ThreadPoolExecutor
from graphlib import TopologicalSorter
from types import SimpleNamespace

import equinox as eqx
import jax
import pytest

import plainformer as pf
from lab import records, run as lab_run
from lab.blocks import run as blocks_run
from lab.colours import run as colours_run
from lab.delta import run as delta_run, runs as delta_runs
from lab.docstrings import run as docstrings_run
from lab.drafts import run as drafts_run
from lab.dynamics import run as dynamics_run
from lab.experts import run as experts_run
from lab.latent import run as latent_run
from lab.long import run as long_run
from lab.positions import run as positions_run
from lab.post_norm.runs import RUNS
from lab.recipes_training import run as recipes_training_run
from lab.records import LAB
from lab.scaling_laws import run as scaling_laws_run
from lab.shakespeare import run as shakespeare_run
from lab.walk import run as walk_run
from lab.writing_today import run as writing_today_run
from plainformer.models.accounting import cache_bytes

record = pf.data.load_record


def test_the_loop_finds_every_run_and_says_what_it_will_take():
    found = lab_run.runs()
    assert found.keys() == {path.parent.name for path in LAB.glob("*/run.py")}
    assert all(callable(run.results) and callable(run.card) for run in found.values())
    assert all(figure.NUMBERS.is_file() and callable(figure.write) for figure in lab_run.figures())
    assert lab_run.runs("vision_").keys() == {"vision_crossing"}
    assert lab_run.minutes(["docstrings", "of no folder"]) == {"docstrings": record("docstrings")["made"]["minutes"]}
    said = lab_run.plan(["a", "b"], {"a": 90, "c": 5}).splitlines()
    assert said[1:] == ["  a: 90 min", "  b: not timed yet"]


def test_the_loop_makes_first_what_others_need():
    done: list[str] = []

    def work(name: str) -> tuple[str, ...]:
        return tuple(done)

    with ThreadPoolExecutor(2) as pool:
        needs: dict[str, tuple[str, ...]] = {
            "reading": ("writing", "of no folder"),
            "apart": (),
            "writing": (),
            "last": ("reading", "apart"),
        }
        before = {}
        for name, was_done in lab_run.in_order(needs, pool, work):
            before[name] = was_done
            done.append(name)
    assert before.keys() == needs.keys()
    assert "writing" in before["reading"]
    assert {"reading", "apart"} <= set(before["last"])
    with ThreadPoolExecutor(2) as pool, pytest.raises(ZeroDivisionError):
        list(lab_run.in_order(needs, pool, lambda name: 1 / 0))


def test_runs_need_those_whose_models_and_records_they_load():
    found, folders = lab_run.runs(), {path.stem: path.parent.name for path in LAB.glob("*/*.safetensors")}
    needs = {name: set(getattr(run, "NEEDS", ())) for name, run in found.items()}
    assert all(each <= found.keys() for each in needs.values())
    TopologicalSorter(needs).prepare()  # no run needs itself
    for name in found:
        files = [path for path in LAB.glob(f"{name}/*.py") if not path.stem.startswith("test_")]
        text = "".join(path.read_text(encoding="utf-8") for path in files)
        loaded = re.findall(r"load_(?:pretrained|weights|record)\(\"(\w+)\"\)", text)
        assert {folders.get(each, each) for each in loaded} <= needs[name], name


def test_a_record_keeps_how_it_was_made_until_it_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "LAB", tmp_path)
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "page.safetensors").write_bytes(b"")
    run = SimpleNamespace(facts=lambda found: {"A b": found["loss"]})

    def written(*rest) -> dict:
        records.write_record("page", {"loss": "1"}, run, *rest)
        return json.loads((tmp_path / "page" / "record.json").read_text(encoding="utf-8"))

    assert written({"minutes": 2.0})["made"] == {"minutes": 2.0}
    assert (found := written())["made"] == {"minutes": 2.0}
    assert found["facts"] == {"a_b": "1"}
    assert found["weights"].keys() == {"page.safetensors"}
    assert records.measured(found) == {"loss": "1"}


def test_records_are_of_the_weights_beside_them():
    known = records.checksums()
    for name in lab_run.runs():
        weights = {f"lab/{name}/{file}": checksum for file, checksum in record(name).get("weights", {}).items()}
        stored = {file for file in known if file.startswith(f"lab/{name}/") and file.endswith(".safetensors")}
        assert weights == {file: known[file] for file in stored}, name


def test_facts_say_what_was_recorded():
    for name, run in lab_run.runs().items():
        recorded = record(name)
        if "facts" in recorded or hasattr(run, "facts"):
            found = records.named(run.facts(records.measured(recorded)))
            assert found == recorded["facts"], f"make it anew: python -m lab.run {name} --facts"


def settings_of(run, found: dict) -> bool:
    """Whether a recorded run has these settings."""
    return json.loads(json.dumps(dataclasses.asdict(run))).items() <= found.items()


def test_every_run_of_the_scripts_is_recorded():
    latent = record("latent")
    knobs = [run for runs in latent_run.knobs().values() for run in runs]
    found = latent["runs"] + [run for runs in latent["knobs"].values() for run in runs]
    for asked, recorded in (
        (positions_run.grid(), record("positions")["runs"]),
        (latent_run.grid() + knobs, found),
        (list(RUNS), record("post_norm")["runs"]),
    ):
        assert all(settings_of(run, each) for run, each in zip(asked, recorded, strict=True))
    colours = {run["name"]: len(run["layers"]) for run in record("colours")["runs"]}
    assert {run.name: len(seeds) for run, seeds in colours_run.RUNS.items()} == colours
    blocks = record("blocks")["runs"]
    assert [blocks_run.Setting(*list(run.values())[:4]) for run in blocks] == blocks_run.SETTINGS
    assert {len(run["validation"]) for run in blocks} == {len(blocks_run.SEEDS)}
    drafts = {(run["num_steps"], run["seed"]) for run in record("drafts")["runs"]}
    assert drafts == set(itertools.product(drafts_run.STEPS, drafts_run.SEEDS))
    ways = record("writing_today")["ways"]["stored"]
    assert {way: list(rows) for way, rows in ways.items()} == {
        way: list(choices) for way, choices in writing_today_run.settings().items()
    }
    docs = record("docstrings")
    plans = docstrings_run.SIZES | {str(n): size for n, size in docstrings_run.SHARES.items()}
    trained = docs["sizes"] | docs["shares"]
    assert {name: one["curve"][-1][0] for name, one in trained.items()} == {
        name: plan.num_steps for name, plan in plans.items()
    }
    plays = record("shakespeare")["sizes"]
    assert {name: one["curve"][-1][0] for name, one in plays.items()} == {
        name: plan.num_steps for name, plan in shakespeare_run.SIZES.items()
    }
    names = {"as it is", *long_run.ways(128)}
    assert all(of.keys() == names | long_run.OTHERS.keys() for of in record("long")["look"].values())


def num_parameters(make) -> int:
    return pf.count_parameters(eqx.filter_eval_shape(make))


def test_recorded_sizes_are_those_of_the_models():
    for found in record("latent")["runs"][::3]:
        run = latent_run.Run(**{field.name: found[field.name] for field in dataclasses.fields(latent_run.Run)})
        config = pf.DecoderConfig(latent_run.WORDS, latent_run.LENGTH + 1, run.stack)
        assert num_parameters(lambda c=config: pf.Decoder(c, key=jax.random.key(0))) == found["parameters"]
        assert cache_bytes(run.stack, 1) == found["cache"]
    experts = {name: experts_run.arm(record("experts")["runs"]["arms"], name)[0] for name in experts_run.ARMS}
    for name, run in experts.items():
        model = jax.eval_shape(lambda n=name, r=run: experts_run.make(experts_run.Run(n, r["rate"]), 40))
        assert pf.count_parameters(model) == run["parameters"]
        assert pf.models.active_parameters(model) == run["at work"]
    for of, size in {"world": 40, "docstrings": 1024}.items():
        for run in record("scaling_laws")["runs"][of]:
            width = run["width"]
            assert num_parameters(lambda w=width, s=size: scaling_laws_run.make(w, s, 0)) == run["parameters"]
    for task, kinds in delta_run.KINDS.items():
        for kind in kinds:
            assert record("delta")[task.name][kind]["parameters"] == delta_runs.parameters(kind, task)
    for name, each in record("walk")["machines"].items():
        config = walk_run.config_of(name)
        assert num_parameters(lambda c=config: pf.Decoder(c, key=jax.random.key(0))) == each["parameters"]
        assert each["cache"] == cache_bytes(config.stack, walk_run.LENGTH)
        assert each["read"] == walk_run.read_bytes(config.stack) <= each["cache"]
    recipes = record("recipes_training")
    model = pf.Decoder(recipes_training_run.config_of(), key=jax.random.key(0))
    hidden = jax.tree.leaves(pf.training.hidden_matrices(model))
    sizes = [leaf.size for leaf, is_hidden in zip(jax.tree.leaves(model), hidden, strict=True) if is_hidden]
    assert (pf.count_parameters(model), sum(sizes)) == (recipes["parameters"], recipes["hidden"])


def test_rates_are_the_best_that_were_tried():
    for task, kinds in delta_run.KINDS.items():
        for found in (record("delta")[task.name][kind] for kind in kinds):
            assert found["rate"] == float(min(found["losses"], key=found["losses"].get))
    for name in experts_run.ARMS:
        tried = experts_run.arm(record("experts")["runs"]["rates"], name)
        best = min(tried, key=lambda run: run["loss"])["rate"]
        assert {run["rate"] for run in experts_run.arm(record("experts")["runs"]["arms"], name)} == {best}
    recurrent = record("recurrent")
    for kind, tried in recurrent["tried"].items():
        rates, losses = zip(*tried, strict=True)
        best = losses.index(min(losses))
        assert rates[best] == recurrent["rates"]["text"][kind]
        assert 0 < best < len(rates) - 1
    for name, kinds in recurrent["tried with copying"].items():
        for kind, tried in kinds.items():
            assert min(tried, key=lambda each: each[1])[0] == recurrent["rates"][name][kind], (name, kind)
    recipes = record("recipes_training")
    for name, each in [*recipes["optimisers"].items(), *recipes["schedules"].items()]:
        tried = {float(rate): loss for rate, loss in each["tried"].items()}
        assert min(tried, key=tried.get) == each["rate"], name
        assert min(tried) < each["rate"] < max(tried), name
        assert tried[each["rate"]] == each["above"][0], name
    for kind, each in record("dynamics")["kinds"].items():
        assert list(map(float, each["errors"])) == list(dynamics_run.RATES)
        assert each["rate"] == float(min(each["errors"], key=each["errors"].get)), kind
