"""The recorded runs: their cards and figures say what was recorded, every run is there, and the conclusions hold."""

import dataclasses
import itertools
import json
import math
import re

import delta_runs
import dynamics_figure
import equinox as eqx
import jax
import modern_figure
import numpy as np
import preferring_figure
import pytest
import recipes_figure
import records
import recurrent_card
import runs_figure
import scaling_laws_figure
import train_blocks
import train_colours
import train_crossing
import train_delta
import train_docstrings
import train_drafts
import train_dynamics
import train_experts
import train_latent
import train_long
import train_models
import train_positions
import train_recipes_training
import train_recurrent
import train_scaling_laws
import train_seq2seq
import train_shakespeare
import train_staircase
import train_walk
import train_writing_today
from book import ROOT
from post_norm_runs import LONGER, MASKED, OTHERS, RUNS, SHORT, SMALLER, SOME, Run, bert
from recurrent_runs import KINDS

import plainformer as pf
from plainformer.models.accounting import cache_bytes

MODELS = ROOT / "models"
record = pf.data.load_record


def card_of(name: str) -> str:
    return (MODELS / f"{name}.md").read_text(encoding="utf-8")


# --- Cards and figures ------------------------------------------------------------------------------------------

OF_THEIR_OWN = {"train_crossing", "train_dynamics"}  # cards that are made of other things, too


def test_cards_say_what_was_recorded():
    scripts = [*train_models.scripts("train_*.py"), *train_models.scripts("*_record.py")]
    scripts = [script for script in scripts if hasattr(script, "card") and script.__name__ not in OF_THEIR_OWN]
    assert len(scripts) > 35
    for script in scripts:
        name = train_models.name_of(script)
        found = record(getattr(script, "RECORD", name))
        facts = found.pop("facts", None)
        assert script.card(found) == card_of(name), name
        if facts or hasattr(script, "facts"):
            assert records.named(script.facts(found)) == facts, f"make it anew: train_models.py {name} --facts"
    assert train_staircase.stories_card(record("staircase")) == card_of("stories")


def test_figures_show_what_was_recorded(tmp_path, monkeypatch):
    for figure in (modern_figure, preferring_figure, recipes_figure):
        stored = json.loads(figure.NUMBERS.read_text(encoding="utf-8"))
        assert json.loads(json.dumps(figure.numbers())) == stored, figure.__name__
    assert runs_figure.run_numbers() == json.loads(runs_figure.NUMBERS.read_text(encoding="utf-8"))
    shown, again = json.loads(scaling_laws_figure.NUMBERS.read_text("utf-8")), scaling_laws_figure.numbers()
    assert shown["sizes"] == again["sizes"]
    np.testing.assert_allclose(shown["law"], again["law"], rtol=1e-3)
    stored = dynamics_figure.NUMBERS
    monkeypatch.setattr(dynamics_figure, "NUMBERS", tmp_path / "dynamics.json")
    dynamics_figure.write()
    assert json.loads((tmp_path / "dynamics.json").read_text("utf-8")) == json.loads(stored.read_text("utf-8"))


def test_a_machine_of_the_figure_differs_from_the_one_before_in_what_it_says_has_changed():
    machines = modern_figure.numbers()["machines"]
    assert list(modern_figure.YEARS) == train_walk.NAMES
    assert [each["year"] for each in machines] == sorted(each["year"] for each in machines)
    names = {"d_ff", "window", *modern_figure.FIELDS}
    for before, after in itertools.pairwise(machines):
        changed = {name for name in names if before[name] != after[name]}
        changed |= {"tied_embedding"} if before["tied"] != after["tied"] else set()
        assert changed == set(after["changed"]) - {"pattern"}, after["name"]
        configs = [train_walk.config_of(each["name"]) for each in (before, after)]
        pairs = [configs, [config.stack for config in configs]]
        fields = {
            field
            for one, other in pairs
            for field in one.__dataclass_fields__
            if field != "stack" and getattr(one, field) != getattr(other, field)
        }
        assert fields == set(train_walk.CHANGES[after["name"]])


# --- What was run -----------------------------------------------------------------------------------------------


def settings_of(run, found: dict) -> bool:
    """Whether a recorded run has these settings."""
    return json.loads(json.dumps(dataclasses.asdict(run))).items() <= found.items()


def test_every_run_of_the_scripts_is_recorded():
    latent = record("latent")
    knobs = [run for runs in train_latent.knobs().values() for run in runs]
    found = latent["runs"] + [run for runs in latent["knobs"].values() for run in runs]
    for asked, recorded in (
        (train_positions.grid(), record("positions")["runs"]),
        (train_latent.grid() + knobs, found),
        (list(RUNS), record("post_norm")["runs"]),
    ):
        assert all(settings_of(run, each) for run, each in zip(asked, recorded, strict=True))
    colours = {run["name"]: len(run["layers"]) for run in record("colours")["runs"]}
    assert {run.name: len(seeds) for run, seeds in train_colours.RUNS.items()} == colours
    blocks = record("blocks")["runs"]
    assert [train_blocks.Setting(*list(run.values())[:4]) for run in blocks] == train_blocks.SETTINGS
    assert {len(run["validation"]) for run in blocks} == {len(train_blocks.SEEDS)}
    drafts = {(run["num_steps"], run["seed"]) for run in record("drafts")["runs"]}
    assert drafts == set(itertools.product(train_drafts.STEPS, train_drafts.SEEDS))
    ways = record("writing_today")["ways"]["stored"]
    assert {way: list(rows) for way, rows in ways.items()} == {
        way: list(choices) for way, choices in train_writing_today.settings().items()
    }
    docs = record("docstrings_losses")
    plans = train_docstrings.SIZES | {str(n): size for n, size in train_docstrings.SHARES.items()}
    trained = docs["sizes"] | docs["shares"]
    assert {name: one["curve"][-1][0] for name, one in trained.items()} == {
        name: plan.num_steps for name, plan in plans.items()
    }
    plays = record("shakespeare_losses")["sizes"]
    assert {name: one["curve"][-1][0] for name, one in plays.items()} == {
        name: plan.num_steps for name, plan in train_shakespeare.SIZES.items()
    }
    names = {"as it is", *train_long.ways(128)}
    assert all(of.keys() == names | train_long.OTHERS.keys() for of in record("long")["look"].values())


def num_parameters(make) -> int:
    return pf.count_parameters(eqx.filter_eval_shape(make))


def test_recorded_sizes_are_those_of_the_models():
    for found in record("latent")["runs"][::3]:
        run = train_latent.Run(**{field.name: found[field.name] for field in dataclasses.fields(train_latent.Run)})
        config = pf.DecoderConfig(train_latent.WORDS, train_latent.LENGTH + 1, run.stack)
        assert num_parameters(lambda c=config: pf.Decoder(c, key=jax.random.key(0))) == found["parameters"]
        assert cache_bytes(run.stack, 1) == found["cache"]
    experts = {name: train_experts.arm(record("experts")["runs"]["arms"], name)[0] for name in train_experts.ARMS}
    for name, run in experts.items():
        model = jax.eval_shape(lambda n=name, r=run: train_experts.make(train_experts.Run(n, r["rate"]), 40))
        assert pf.count_parameters(model) == run["parameters"]
        assert pf.models.active_parameters(model) == run["at work"]
    for of, size in {"world": 40, "docstrings": 1024}.items():
        for run in record("scaling_laws")["runs"][of]:
            width = run["width"]
            assert num_parameters(lambda w=width, s=size: train_scaling_laws.make(w, s, 0)) == run["parameters"]
    for task, kinds in train_delta.KINDS.items():
        for kind in kinds:
            assert record("delta")[task.name][kind]["parameters"] == delta_runs.parameters(kind, task)
    for name, each in record("walk")["machines"].items():
        config = train_walk.config_of(name)
        assert num_parameters(lambda c=config: pf.Decoder(c, key=jax.random.key(0))) == each["parameters"]
        assert each["cache"] == cache_bytes(config.stack, train_walk.LENGTH)
        assert each["read"] == train_walk.read_bytes(config.stack) <= each["cache"]
    recipes = record("recipes_training")
    model = pf.Decoder(train_recipes_training.config_of(), key=jax.random.key(0))
    hidden = jax.tree.leaves(pf.training.hidden_matrices(model))
    sizes = [leaf.size for leaf, is_hidden in zip(jax.tree.leaves(model), hidden, strict=True) if is_hidden]
    assert (pf.count_parameters(model), sum(sizes)) == (recipes["parameters"], recipes["hidden"])


def test_rates_are_the_best_that_were_tried():
    for task, kinds in train_delta.KINDS.items():
        for found in (record("delta")[task.name][kind] for kind in kinds):
            assert found["rate"] == float(min(found["losses"], key=found["losses"].get))
    for name in train_experts.ARMS:
        tried = train_experts.arm(record("experts")["runs"]["rates"], name)
        best = min(tried, key=lambda run: run["loss"])["rate"]
        assert {run["rate"] for run in train_experts.arm(record("experts")["runs"]["arms"], name)} == {best}
    recurrent = record("recurrent")
    for kind, tried in recurrent["tried"].items():
        rates, losses = zip(*tried, strict=True)
        best = losses.index(min(losses))
        assert rates[best] == recurrent["rates"]["text"][kind]
        assert 0 < best < len(rates) - 1
    recipes = record("recipes_training")
    for name, each in [*recipes["optimisers"].items(), *recipes["schedules"].items()]:
        tried = {float(rate): loss for rate, loss in each["tried"].items()}
        assert min(tried, key=tried.get) == each["rate"], name
        assert min(tried) < each["rate"] < max(tried), name
        assert tried[each["rate"]] == each["above"][0], name
    for kind, words in train_dynamics.WORDS.items():
        line = re.search(rf"^\| {words} \| (.*) \|$", card_of("dynamics"), re.MULTILINE)[1].split(" | ")
        errors = [float(error) for error in line[3:-1]]
        assert float(line[-1]) == train_dynamics.RATES[int(np.argmin(errors))], kind


def test_descend_stops_below_both_neighbours():
    seen = []

    def score(rate):
        seen.append(rate)
        return abs(rate - 5)

    assert train_recurrent.descend((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), 2.0, score) == 5
    assert set(seen) == {1, 2, 3, 4, 5, 6}


def test_the_forecast_is_the_one_of_the_recorded_runs():
    """What was written before the large run was trained follows from the others alone."""
    recorded = record("scaling_laws")
    assert recorded["predicted"] == json.loads(train_scaling_laws.PREDICTED.read_text(encoding="utf-8"))
    runs, size = recorded["runs"]["world"], recorded["predicted"]["world"]["parameters"]
    assert size == recorded["large"]["parameters"] > 2 * max(run["parameters"] for run in runs)
    said = train_scaling_laws.interval(runs, size, recorded["floor"])
    for length, numbers in recorded["predicted"]["world"]["known floor"].items():
        np.testing.assert_allclose(said[length], numbers, atol=0.002)


# --- Conclusions ------------------------------------------------------------------------------------------------


def test_every_part_lowers_the_loss_but_one_head_alone():
    """With every seed; chapter 02 says why a single head is no better than an average."""
    rows = {name: found for name, found in record("staircase")["rows"].items() if name != "head"}
    for above, below in itertools.pairwise(rows):
        assert max(each["above"] for each in rows[below]) < min(each["above"] for each in rows[above]), below


def test_most_of_the_gain_of_several_heads_is_in_words_that_are_no_answers():
    head, heads = (record("staircase")["rows"][row] for row in ("head", "heads"))
    pairs = list(zip(head, heads, strict=True))
    gain = np.mean([old["above"] - new["above"] for old, new in pairs])
    others = np.mean([old["kinds"]["other"][0] - new["kinds"]["other"][0] for old, new in pairs])
    of_all = head[0]["kinds"]["other"][2] / sum(number for *_, number in head[0]["kinds"].values())
    assert of_all * others / gain == pytest.approx(0.87, abs=0.01)


def test_no_single_head_comes_below_the_bound():
    layers = {run["name"]: run["layers"] for run in record("colours")["runs"]}
    errors = {run: [layer["error"] for layer in layers[run.name]] for run in train_colours.RUNS}
    single = {run: each for run, each in errors.items() if run.heads == 1 and run.patches == 5}
    assert len(single) >= 10
    assert 0.4 < min(map(min, single.values())) < 0.405
    assert max(max(each) for run, each in errors.items() if run.heads > 1) < 0.001
    two, three, four = (each for run, each in errors.items() if run.patches < 5)
    assert two == pytest.approx([1 / 3] * 3, abs=0.004)
    assert min(three + four) > 0.37


def test_small_values_decide_whether_post_norm_learns():
    found = dict(zip(RUNS, record("post_norm")["runs"], strict=True))
    pairs = record("blocks")["counted"]["2"]

    def of(run: Run, name: str = "validation") -> list[float]:
        return [model[name] for model in found[run]["models"]]

    short = (Run(steps=SHORT), *(bert(small=small, steps=SHORT) for small in SOME))
    large = [run for run in short if "values" not in run.small]
    small = [run for run in short if "values" in run.small]
    assert (len(large), len(small)) == (4, 4)
    assert min(min(of(run)) for run in (*large, *OTHERS)) > 3.05
    assert max(max(of(run)) for run in (*small, *(run for run in SMALLER if run.factor != 0.9))) < pairs
    large, small, pre = (of(run)[0] for run in MASKED)
    assert large > 3.2 > 3.05 > max(small, pre)
    _, _, from_bert, quick, without, pre = LONGER
    assert np.mean(of(from_bert)) - np.mean(of(pre)) < 0.1
    assert sorted(of(without))[2] > 2 > sorted(of(without))[1]
    assert max(of(quick)) < 1.85
    cut = 1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / (1 - math.erfc(2**0.5))  # the variance of a cut normal number
    assert (round(cut, 2), round(768 * 0.02**2 * cut, 2)) == (0.77, 0.24)
    assert bert().std == pytest.approx(0.02 * math.sqrt(768 / 32))


def test_pre_norm_learns_more_than_post_norm():
    runs, counted = record("blocks")["runs"], record("blocks")["counted"]
    at_end = {
        placement: [loss for run in runs if run["placement"] == placement for loss in run["validation"]]
        for placement in ("pre", "post")
    }
    assert max(at_end["pre"]) < counted["2"]
    assert sum(loss < counted["2"] for loss in runs[-1]["validation"]) == 2  # of post-norm with a small beginning
    pre, post, small = (
        np.array(run["curves"]) for run in runs if (run["learning_rate"], run["warmup_steps"]) == (0.003, 0)
    )
    assert np.abs(pre[:, :5] - post[:, :5]).max() < 0.35
    assert pre[:, 8:10].mean(axis=1).max() < 3.26 - 0.15 < 3.26 - 0.1 < post[:, 8:10].mean(axis=1).min()  # the entropy
    assert post[:, 50:].mean(axis=1).min() > counted["1"] - 0.1
    assert sorted(small[:, 90:].mean(axis=1) < counted["1"] - 0.5) == [False, True, True]


def positions_of(scheme: str, heads: int, text: str) -> np.ndarray:
    """Of a scheme a row for each seed, a column for each quarter of the text."""
    chosen = {"scheme": scheme, "heads": heads, "text": text, "steps": 2000}
    runs = [run for run in record("positions")["runs"] if chosen.items() <= run.items()]
    assert [run["seed"] for run in runs] == list(train_positions.SEEDS)
    return np.array([train_positions.quarters(run["right"]) for run in runs])


def test_positions_carry_beyond_the_training():
    for text, heads in itertools.product(train_positions.TEXTS, train_positions.HEADS):
        for scheme in ("sinusoidal", "learned", "rotary", "relative"):
            assert positions_of(scheme, heads, text)[:, 0].min() > 0.99  # as far as training went
        none, learned = positions_of("none", heads, text), positions_of("learned", heads, text)
        assert none[:, 0].max() < 0.5
        assert learned[:, 1:].max() < none[:, 1:].min()  # worse than no positions at all
        assert positions_of("relative", heads, text)[:, 3].min() > 0.84
        fallen = positions_of("ALiBi", heads, text).mean(axis=0)
        assert -0.005 < fallen[0] - fallen[3] < 0.12
    assert positions_of("rotary", 8, "random")[:, 2:].max() < 0.06  # by chance


def test_crossing_transformer_is_ahead_of_its_opponents():
    rows = re.findall(r"^\| (.*) \| (\d+\.\d\d)% \| (\d+\.\d\d)% \|$", card_of("vision_crossing"), flags=re.MULTILINE)
    shares = {name: (float(asked), float(held_out)) for name, asked, held_out in rows}
    ours = [share for name, share in shares.items() if name.startswith("transformer, seed")]
    theirs = [share for name, share in shares.items() if name.startswith("convolutional network, seed")]
    theirs.append(shares["support-vector machine on all pixels"])
    assert len(ours) == len(train_crossing.SEEDS) == len(theirs) - 1 == 3
    for kind, mean in enumerate(shares["transformer, mean"]):
        assert sum(share[kind] for share in ours) / 3 == pytest.approx(mean, abs=0.011)
        assert min(share[kind] for share in ours) > max(share[kind] for share in theirs)
    # Crossings that training never asked for: ahead by more than twice the spread of seeds.
    spread = max(share[1] for share in ours) - min(share[1] for share in ours)
    assert shares["transformer, mean"][1] - max(share[1] for share in theirs) > 2 * spread
    others = record("crossing_opponents")
    runs = [run for several in others["table"].values() for run in several] + [*others["turned"].values()]
    assert max(run["held_out"] for run in runs) < min(share[1] for share in ours) / 100 - 0.1
    assert min(run["asked"] for run in runs) > 0.97


def test_recorded_translations_are_as_good_as_the_cards_of_the_models_say():
    recorded, card, each = record("translations"), card_of("seq2seq"), []
    for seed, name in enumerate(train_seq2seq.NAMES):
        stated = re.search(rf"\| {seed} \| `{name}.safetensors` \| (\S+)% \| (\S+)% \|", card).groups()
        parts = ("held_out_years", "held_out_language")
        found = [1 - len(recorded[name][part]) / recorded["sizes"][part] for part in parts]
        np.testing.assert_allclose([float(each) / 100 for each in stated], found, atol=1e-4)
        each.append(float(stated[0]))
    (mean,) = re.findall(r"held-out years (\d+\.\d\d)% in the mean", card)
    assert sum(each) / 3 == pytest.approx(float(mean), abs=0.006)
    assert float(mean) >= 99


def test_answers_about_languages_have_the_recorded_accuracy():
    recorded, test = record("fine_tuning"), pf.data.name_splits().test
    if len(test) == recorded["num_test"]:  # the names depend on Babel's version
        answers = [recorded["languages"][ord(letter) - ord("a")] for letter in recorded["answers"]]
        right = [answer == name.language for answer, name in zip(answers, test, strict=True)]
        assert 100 * np.mean(right) == pytest.approx(recorded["accuracy"]["pre-trained"]["100"][-1], abs=0.01)


def test_larger_language_models_have_smaller_losses_and_so_have_longer_texts():
    docs, plays = record("docstrings_losses"), record("shakespeare_losses")
    losses = [one["loss"] for one in docs["sizes"].values()]
    of_shares = [*(one["loss"] for one in docs["shares"].values()), docs["sizes"]["middle"]["loss"]]
    counts = [train_docstrings.best_count(docs, n) for n in (*train_docstrings.SHARES, 1)]
    of_plays = [one["curve"][-1][1] for one in plays["sizes"].values()]
    for falling in (losses, of_shares, counts, of_plays):
        assert falling == sorted(falling, reverse=True)
    assert docs["stored loss"] == pytest.approx(docs["sizes"]["small"]["loss"], abs=0.002)
    assert plays["stored loss"] == pytest.approx(of_plays[-1], abs=0.001)  # what eight bits cost
    least = min(loss for losses in plays["counted"].values() for loss in losses.values())
    assert least - 0.01 < of_plays[0] < least
    assert np.mean(record("holes")["names"]["5-gram"]) < np.mean(record("holes")["names"]["encoder"]) - 0.3


def test_a_call_of_a_draft_gives_one_letter_at_least_and_one_more_than_were_drafted_at_most():
    drafts, seconds = record("drafts"), record("seconds")
    for run in [*drafts["runs"], drafts["itself"]]:
        for num_drafted in train_drafts.NUM_DRAFTED:
            assert 1 < train_drafts.letters_per_call([run], num_drafted) <= num_drafted + 1
    assert np.mean([run["surprise"] for run in drafts["runs"]]) == pytest.approx(drafts["alone"], abs=0.05)
    for each in seconds["speculation"].values():
        assert all(1 <= per_call <= int(num) + 1 for num, per_call in each["per call"].items())
        assert each["ms"]["draft alone"] / each["ms"]["alone"] == pytest.approx(0.2, abs=0.05)
    nats = seconds["bits"]["nats"]
    assert abs(nats["8"] - nats["32"]) < 0.001 < nats["4"] - nats["32"] < 0.02


def test_models_of_rigid_bodies_keep_what_they_are_built_to_keep():
    recorded = record("drifts")
    runs = recorded["one shape"]
    lost = {name: {kind: sum(one["lost"] for one in each) for kind, each in runs[name].items()} for name in runs}
    drift = {name: np.median([one["length"] for one in runs[name]["turning"]]) for name in runs}
    assert all(lost[name]["turning"] == 0 and drift[name] < 5e-6 for name in runs)
    assert (
        lost["dynamics"]["network"] == lost["dynamics"]["volume_preserving"] == lost["dynamics_short"]["network"] == 0
    )
    volumes = {kind: np.abs(each).max() for kind, each in recorded["volumes"].items()}
    assert max(volumes["volume_preserving"], volumes["network"]) < 0.01
    assert volumes["turning"] < 0.1 < 4 < recorded["volumes"]["ordinary"][3]
    away = {kind: np.mean([one["distance"] for one in each]) for kind, each in runs["dynamics_lengths"].items()}
    assert away["ordinary"] == min(away.values())


def test_recurrent_networks_compare_as_chapter_13_says():
    recorded = record("recurrent")

    def reached(name: str, kind, number: str = "judge") -> list[float]:
        return recurrent_card.runs_of(recorded["runs"][name], kind, number)

    for name, counts in recorded["parameters"].items():
        assert max(counts.values()) < 1.02 * min(counts.values()), name
    oldest = min(reached("text", "classic"))
    assert all(len(reached("text", kind)) == 3 for kind in KINDS)
    assert all(max(reached("text", kind)) < oldest for kind in KINDS[1:])
    mean = {kind: np.mean(reached("text", kind)) for kind in KINDS}
    assert all(abs(mean[kind] - mean["modern"]) < 0.02 for kind in ("gated", "rnn", "lstm"))
    assert min(KINDS, key=lambda kind: reached("long", kind)[0]) == "gru"
    for delay, kind in itertools.product((10, 80), ("classic", "modern", "gated")):
        assert min(reached(f"copy {delay}", kind, "share")) > 0.99
    long = {run["kind"]: run for run in recorded["runs"]["copy 80 long"]}
    assert long["gru"]["share"] > 0.99
    assert long["rnn"]["judge"] < 1.9
    assert long["lstm"]["judge"] == pytest.approx(np.log(8), abs=0.002)
    far = {run["kind"]: run["reach"][48] for run in recorded["runs"]["text"] if "reach" in run and run["seed"] == 0}
    assert max(far["classic"], far["modern"]) < 0.0305
    assert max(far[kind] for kind in KINDS[2:]) < 0.004
    reaches = {kind: np.mean(powers, axis=0) for kind, powers in record("reaches").items()}
    assert reaches["rnn"][40] > max(reaches["modern"][40], reaches["classic"][40])
    assert min(reaches[kind][1:].min() for kind in ("classic", "modern")) > -2
    assert reaches["gru"][90] < reaches["lstm"][90] < min(reaches["rnn"][90], reaches["gated"][90])


def test_the_translator_is_better_by_a_beam_and_was_nearly_at_its_end():
    both = record("translator")["both"]
    assert both["test"]["beam"]["cased"] > max(36, both["test"]["greedy"]["cased"])
    losses = [loss for *_, loss in both["curve"]]
    assert losses[-1] == min(losses) > losses[-5] - 0.04


def test_marks_taken_away_move_the_answer_whatever_is_asked_for():
    """The control: the silence that brings one answer back takes the other, so that nothing is repaired."""
    laden = record("inside")["laden"]
    first, other = (laden["seed 1"][thing] for thing in ("the first one's", "the other's"))
    first_silent, second_silent = (f"without the mark at the {room} room" for room in ("first", "second"))
    assert first["whole"][0] < 0.2 < 0.9 < first[second_silent][0]
    assert other[second_silent][1] < 0.1 < 0.8 < other["whole"][1]
    assert first[first_silent][0] < first["whole"][0]
    for name, thing in itertools.product(("seed 0", "seed 1, a quarter"), ("the first one's", "the other's")):
        before, after = (laden[name][thing][how] for how in ("whole", second_silent))
        assert after[0] > before[0] + 0.1
        assert after[1] < before[1] - 0.1


def test_small_mistakes_pass_the_test_of_hidden_tokens_and_adapters_help():
    found = {name: each["right"] for name, each in record("reactions")["mistakes"].items()}
    passed = {name for name, right in found.items() if right == found["none"]}
    assert {"11 blocks for 12", "13 blocks for 12", "eps 0.1 for 1e-12"} < passed < found.keys()
    before, *runs = record("chemist_adapters")["runs"]
    adapted = [run for run in runs if run["where"] == "adapters of two maps"]
    assert len(adapted) == 4
    assert all(run["surprise"] < before["surprise"] - 0.4 and run["right"] > before["right"] for run in adapted)


def test_both_ways_of_serving_wrote_the_same_and_joining_took_fewer_steps():
    for one in (one for seeds in record("caches")["serving"].values() for one in seeds.values()):
        assert one["same texts"]
        assert one["steps"]["joins"] < one["steps"]["waits"]


def test_a_hybrid_of_layers_with_a_state_keeps_a_quarter_and_forgets_names():
    recorded = record("delta")
    plain, hybrid = recorded["stories"]["all attention"], recorded["stories"]["hybrid"]
    assert hybrid["cache"][1] / plain["cache"][1] == pytest.approx(1 / 4, abs=0.01)
    assert hybrid["milliseconds"]["step"][1] < plain["milliseconds"]["step"][1] / 2
    longer = {kind: each["32 names, 64 pairs"] for kind, each in recorded["knobs"]["five times the steps"].items()}
    assert 0.7 < min(longer["delta"], longer["plain delta"]) <= max(longer["delta"], longer["plain delta"]) < 0.8
    assert longer["softmax"] > 0.99


def test_the_best_setting_writes_as_many_different_sentences_as_are_asked_for():
    recorded = record("writing_today")
    least = 0.9 * recorded["ways"]["told"]["different"]
    for model in ("stored", "narrow"):
        for way, setting in train_writing_today.best_settings(recorded, model).items():
            choices = {name: train_writing_today.means(rows) for name, rows in recorded["ways"][model][way].items()}
            rich = [row["possible"] for row in choices.values() if row["different"] >= least]
            if rich:
                assert choices[setting]["possible"] == max(rich)


def test_positions_that_end_with_linear_biases_are_those_of_the_staircase():
    above = [seed["above"][0] for seed in record("long")["stories"]["at once"]["ALiBi"]]
    np.testing.assert_allclose(above, [row["above"] for row in record("staircase")["rows"]["positions"]], atol=0.015)
