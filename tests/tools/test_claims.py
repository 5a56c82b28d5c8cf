"""The role `claim` finds the test that a sentence names, and the list of claims says the sentence."""

from types import SimpleNamespace

import pytest
from book_meaning.claims import claim, said_by
from docutils import nodes


@pytest.fixture
def env(tmp_path):
    (tmp_path / "lab" / "heads").mkdir(parents=True)
    (tmp_path / "lab" / "heads" / "test_run.py").write_text("x = 1\n\n\ndef test_eight_beat_one():\n    assert x\n")
    noted = []
    return SimpleNamespace(srcdir=tmp_path, note_dependency=noted.append, noted=noted)


def test_claim_is_the_test_of_that_name_on_which_the_page_then_depends(env):
    found = claim(env, "heads.eight_beat_one")
    assert found == ("test_eight_beat_one", "lab/heads/test_run.py", 4)
    assert env.noted == [str(env.srcdir / "lab" / "heads" / "test_run.py")]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("heads.eight_beat_two", "lab/heads has no test_eight_beat_two; it has eight_beat_one"),
        ("feet.eight_beat_one", "there are no tests in lab/feet"),
    ],
)
def test_claim_names_what_is_not_there(env, name, said):
    with pytest.raises(LookupError, match=said):
        claim(env, name)


def test_a_claim_is_listed_by_its_sentence_alone():
    first, second, third = (nodes.superscript("", "", nodes.reference("", "test"), classes=["claim"]) for _ in "123")
    text = [nodes.Text("It has one. With eight it is ahead "), first, nodes.Text(". Five are level "), second]
    nodes.paragraph("", "", *text, nodes.Text(", six not "), third, nodes.Text(". The end."))
    assert said_by(first) == "With eight it is ahead."
    assert said_by(second) == said_by(third) == "Five are level, six not."
