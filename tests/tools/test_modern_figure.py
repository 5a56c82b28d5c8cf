"""The live figure of the block by year shows the machines of the walk, with their configurations and losses."""

import json

import modern_figure
import train_walk

NUMBERS = json.loads(modern_figure.NUMBERS.read_text(encoding="utf-8"))


def test_the_figure_reads_what_the_script_writes():
    assert modern_figure.numbers() == NUMBERS


def test_every_machine_has_a_year_and_the_years_go_on():
    years = [machine["year"] for machine in NUMBERS["machines"]]
    assert list(modern_figure.YEARS) == train_walk.NAMES
    assert years == sorted(years)
    assert (years[0], years[-1]) == (2017, 2025)


def test_a_machine_differs_from_the_one_before_in_what_it_says_has_changed():
    names = {"d_ff", "window", *modern_figure.FIELDS}
    for before, after in zip(NUMBERS["machines"], NUMBERS["machines"][1:], strict=False):
        changed = {name for name in names if before[name] != after[name]}
        changed |= {"tied_embedding"} if before["tied"] != after["tied"] else set()
        assert changed == set(after["changed"]) - {"pattern"}, after["name"]
