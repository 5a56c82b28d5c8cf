"""What the benchmarks compute from their times, and how they report it. Nothing is timed here."""

import ast
import gzip
import importlib
import json
import re

import equinox as eqx
import jax
import numpy as np
import pytest
from book import ROOT

import plainformer as pf
from plainformer.generation.sampling import Continuation


@pytest.fixture
def module(monkeypatch):
    """Return the benchmarks' modules by name: they are run from the repository's folder, as `python -m` does."""
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"benchmarks.{name}")


def test_modules_import_each_other_from_their_package():
    files = list((ROOT / "benchmarks").glob("*.py"))
    names = {file.stem for file in files}
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            found = [node.module] if isinstance(node, ast.ImportFrom) else []
            found += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not names & set(found), f"{file.name}: {found}"


def test_spreads_and_ratios_by_hand(module):
    timing = module("timing")
    assert timing.spread([5.0, 1.0, 2.0, 4.0, 3.0]) == (2.0, 3.0, 4.0)
    assert timing.spread([1.0, 2.0]) == (1.25, 1.5, 1.75)  # within the numbers, however few they are
    assert timing.spread([0.5, 1.5, 2.5]).show(1) == "1.5 (1.0 to 2.0)"
    # In the second round everything takes ten times as long: no ratio of one round changes by that.
    assert timing.ratios([2.0, 20.0, 2.0], [1.0, 10.0, 1.0]) == (2.0, 2.0, 2.0)
    with pytest.raises(ValueError, match="shorter"):
        timing.ratios([1.0, 2.0], [1.0])


def test_in_turn_calls_round_after_round_and_reads_the_clock_that_it_is_given(module):
    timing, calls = module("timing"), []
    runs = {name: lambda name=name: calls.append(name) for name in ("ours", "theirs")}
    times = timing.in_turn(runs, 2, pause=0, calls=2)
    assert calls == ["ours", "theirs", *["ours", "ours", "theirs", "theirs"] * 2]  # once more, at first, to compile
    assert {name: len(seconds) for name, seconds in times.items()} == {"ours": 2, "theirs": 2}
    ticks = iter([0.0, 3.0, 10.0, 14.0])
    found = timing.in_turn({"ours": lambda: None}, 2, pause=0, calls=2, clock=lambda: next(ticks))
    assert found == {"ours": [1.5, 2.0]}
    assert timing.milliseconds([0.002, 0.003, 0.004]) == "3.0 (2.5 to 3.5)"


def test_report_shows_which_goals_were_reached_and_what_is_missing(module):
    report = module("report")
    goals = [report.Goal("fast", 1.26, "at least", 1.3), report.Goal("low", 1.744, "at most", 1.8, 3)]
    assert [goal.reached for goal in goals] == [False, True]
    assert report.Goal("even", 1.3, "at least", 1.3).reached
    assert report.table(["a", "b"], [[1, "x"]]) == "| a | b |\n| --- | --- |\n| 1 | x |"
    result = report.result_of(report.Section("First", "Nothing.", goals), report.Settings(), "2031-05-07", (0.5, 2.0))
    shown = report.as_markdown({"first": result}, missing=["third"])
    assert "- First: started 2031-05-07; 15 rounds, 3 trainings of 2,000 steps." in shown
    assert "| fast | 1.26 | at least 1.3 | **no** |\n| low | 1.744 | at most 1.8 | yes |" in shown
    assert "## First" in shown
    assert "third" in shown.splitlines()[-1]


def test_a_part_that_runs_alone_leaves_what_was_found_of_the_others(module, tmp_path):
    report = module("report")
    path = tmp_path / "new" / "RESULTS.md"

    def ran(part, body, started):
        goals = [report.Goal(f"speed of {part}", 1.0, "at least", 2.0)]
        result = report.result_of(report.Section(part.title(), body, goals), report.Settings(), started, (1.0, 1.0))
        report.keep(path, ["one", "two", "three"], part, result)
        return path.read_text("utf-8")

    ran("two", "second", "Monday")
    shown = ran("one", "first", "Monday")
    assert "- One; Two: started Monday" in shown
    assert shown.index("## One\n\nfirst") < shown.index("## Two\n\nsecond")
    shown = ran("two", "another", "Tuesday")
    assert "first" in shown
    assert "second" not in shown
    assert shown.count("speed of") == 2
    assert shown.count("started") == 2
    assert shown.endswith("Not measured yet: three.\n")


def test_the_report_is_that_of_the_results_that_are_kept(module):
    report, parts = module("report"), module("run").PARTS
    kept = json.loads((ROOT / "benchmarks" / "RESULTS.json").read_text("utf-8"))
    assert list(kept) == list(parts)
    assert (ROOT / "benchmarks" / "RESULTS.md").read_text("utf-8") == report.as_markdown(kept)
    published = kept["generation"]["body"].split("### SmolLM2")[1]
    rows = re.findall(r"^\| (?:Plainformer|transformers) \| .* \| (\d+) \(.* \| ([\d.]+) \(", published, re.M)
    readme = (ROOT / "README.md").read_text("utf-8")
    for what, of_each in zip(("tokens a second", "tokens read, ms"), zip(*rows, strict=True), strict=True):
        assert f"{what} | {' | '.join(f'{float(number):.0f}' for number in of_each)} |" in readme


def test_shakespeare_models_have_the_same_size_within_five_per_cent(module):
    configs = module("shakespeare").CONFIGS
    sizes = {name: pf.count_parameters(_without_numbers(config)) for name, config in configs.items()}
    assert abs(sizes["modern"] / sizes["classic"] - 1) <= 0.05
    for config in configs.values():
        stack = config.stack
        assert (stack.num_layers, stack.num_heads, stack.d_model, config.context_len) == (4, 4, 128, 64)
        assert stack.dropout_rate == 0


def _without_numbers(config):
    return eqx.filter_eval_shape(lambda key: pf.Decoder(config, key=key), jax.random.key(0))


def test_report_goes_into_the_repository_only_with_the_usual_settings(module):
    run = module("run")

    def place(*words):
        return run.output_of(run.arguments(words)).relative_to(ROOT).as_posix()

    assert place() == place("--text", "a.txt", "--parts", "memory") == "benchmarks/RESULTS.md"
    for words in (["--rounds", "2"], ["--steps", "3"], ["--seeds", "1"]):
        assert place(*words) == "build/benchmarks/RESULTS.md"
    assert run.output_of(run.arguments(["--output", "x.md"])).as_posix() == "x.md"


def test_multi30k_reads_all_pairs(module, tmp_path, monkeypatch):
    multi30k = module("multi30k")
    monkeypatch.setattr(multi30k, "VOCAB_SIZE", 258)  # a token for each byte
    lines = {"de": ["ein Hund", "eine Katze schläft", "zwei"], "en": ["a dog", "a cat", "two of them are here"]}
    for part in ("train", "val", "test_2016_flickr"):
        for language, sentences in lines.items():
            (tmp_path / f"{part}.{language}.gz").write_bytes(gzip.compress("\n".join([*sentences, ""]).encode()))
    corpus = multi30k.read_corpus(str(tmp_path))
    assert corpus.training == corpus.validation
    texts = [tuple(map(corpus.tokenizer.decode, pair)) for bucket in corpus.training for pair in bucket]
    assert sorted(texts) == sorted(zip(lines["de"], lines["en"], strict=True))
    assert corpus.sources == [corpus.tokenizer.encode(text) for text in lines["de"]]
    assert corpus.references == lines["en"]
    assert [arrays.inputs.shape for arrays in corpus.arrays(corpus.training[:1])] == [(1, 6)]  # a dog, and its start


def test_multi30k_writes_with_a_model_as_it_is_and_judges_without_the_token_that_ended(module, monkeypatch):
    multi30k = module("multi30k")
    sizes = {"VOCAB_SIZE": 260, "CONTEXT_LEN": 9, "STACK": pf.StackConfig(d_model=12, num_layers=1, num_heads=2)}
    for name, value in sizes.items():
        monkeypatch.setattr(multi30k, name, value)
    tokenizer = pf.BytePairEncoder.train("ab ab ab", 260, special=multi30k.SPECIAL)
    text = tokenizer.encode("ab ab ab ab")
    corpus = multi30k.Corpus([], [[(text, text)]], [text], ["ab ab ab ab"], tokenizer)
    model = pf.Seq2Seq(corpus.config, key=jax.random.key(0))
    found = multi30k.write(model, corpus, 1.0)
    assert found.validation_loss == pytest.approx(np.log(260), rel=0.3)
    assert multi30k.bleu_of(found, corpus).keys() == found.times.keys() == {"greedy", "beam"}
    ended = Continuation([*text, corpus.config.stop_token], None, 0.0, True, [])
    monkeypatch.setattr(pf, "translate", lambda *given, **options: [ended])
    found = multi30k.write(model, corpus, 1.0)
    assert multi30k.bleu_of(found, corpus) == pytest.approx({"greedy": 100, "beam": 100})


def test_what_is_lacking_or_measures_nothing_is_refused(module, tmp_path):
    with pytest.raises(ValueError, match="TEXT="):
        module("shakespeare").read_text(None)
    other = tmp_path / "other.txt"
    other.write_text("Second Citizen", encoding="utf-8")
    with pytest.raises(ValueError, match="SHA-256"):
        module("shakespeare").read_text(str(other))
    with pytest.raises(FileNotFoundError, match="MULTI30K"):
        module("multi30k").read_corpus(str(tmp_path))
    for words in (["--rounds", "0"], ["--parts", "everything"]):
        with pytest.raises(SystemExit):
            module("run").arguments(words)


def test_each_part_of_a_run_has_its_function(module):
    for name, function in module("run").PARTS.values():
        source = (ROOT / "benchmarks" / f"{name}.py").read_text("utf-8")
        assert re.search(rf"^def {function}\(settings: Settings\) -> Section:$", source, re.MULTILINE), name


def test_multi30k_goals_by_hand(module):
    multi30k = module("multi30k")

    def found(seconds, greedy, beam):
        return multi30k.Found(seconds, 2.3, {}, {"greedy": greedy, "beam": beam})

    scores = {"Plainformer": [{"beam": 30.0}, {"beam": 32.0}], "PyTorch": [{"beam": 31.0}, {"beam": 32.5}]}
    ours, theirs = [found(10.0, 1.0, 1.4), found(20.0, 2.0, 2.8)], [found(13.0, 1.0, 1.4), found(26.0, 2.0, 2.8)]
    goals = multi30k.goals_of({"Plainformer": ours, "PyTorch": theirs}, scores)
    assert [round(goal.value, 6) for goal in goals] == [31.0, -0.75, 1.3, 1.4]
    assert [goal.reached for goal in goals] == [True, True, True, True]
