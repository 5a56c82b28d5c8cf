"""The role `fact` finds what a record says, and names what it lacks."""

import json
from types import SimpleNamespace

import pytest
import toy_site
from book_meaning.facts import fact


@pytest.fixture
def env(tmp_path):
    (tmp_path / "lab" / "rows").mkdir(parents=True)
    numbers = {"facts": {"head.where.0": "25", "head.real": "2.32"}}
    (tmp_path / "lab" / "rows" / "record.json").write_text(json.dumps(numbers))
    noted = []
    return SimpleNamespace(srcdir=tmp_path, note_dependency=noted.append, noted=noted)


def test_fact_is_the_text_of_the_record_on_which_the_page_then_depends(env):
    assert fact(env, "rows.head.where.0") == "25"
    assert env.noted == [str(env.srcdir / "lab" / "rows" / "record.json")]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("rows.head.were.0", "record 'rows' has no fact 'head.were.0'; it has head.where.0"),
        ("rows", "record 'rows' has no fact ''; it has head.real, head.where.0"),
        ("columns.head", "there is no record 'columns' in lab/"),
    ],
)
def test_fact_names_what_is_not_there(env, place, said):
    with pytest.raises(LookupError, match=said):
        fact(env, place)


def test_no_line_ends_before_a_percent_sign_or_the_link_to_a_test(tmp_path):
    page = "# Toy\n\nIt has 16 % and {fact}`rows.share` %\n{claim}`rows.it_has`. In code `16 %`.\n"
    record, test = json.dumps({"facts": {"share": "25"}}), "def test_it_has():\n    assert True\n"
    toy_site.write(tmp_path, {"index.md": page})
    for name, text in {"record.json": record, "test_run.py": test}.items():
        (tmp_path / "lab" / "rows").mkdir(parents=True, exist_ok=True)
        (tmp_path / "lab" / "rows" / name).write_text(text)
    _, said = toy_site.build(tmp_path)
    assert said == ""
    html = (tmp_path / "_build" / "index.html").read_text()
    assert "It has 16\u00a0% and 25\u00a0%\u00a0<sup" in html
    assert html.count("\u00a0%") == 2  # and none in code
