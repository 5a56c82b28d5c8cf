"""The role `fact` finds what a record says, and names what it lacks."""

import json
from types import SimpleNamespace

import pytest
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
