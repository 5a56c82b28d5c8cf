"""Each mistake of the appendix is run, asserted and caught: by an exercise, a section or a test that is there."""

import re

from book import ROOT

PAGE = (ROOT / "chapters" / "mistakes.md").read_text("utf-8")
MISTAKE = re.compile(
    r"^\((mistake-[\w-]+)\)=\n### ([^\n]+)\n\n\*\*(.+?)\*\*(.*?)(?=^\(mistake-|^## |\Z)", re.MULTILINE | re.DOTALL
)
MISTAKES = {label: (symptom, " ".join(lead.split()), text) for label, symptom, lead, text in MISTAKE.findall(PAGE)}


def catchers(label):
    """The labels and tests that are said to catch a mistake."""
    said = MISTAKES[label][2].split("*Caught by*")[1]
    return re.findall(r"\{ref\}`([\w-]+)`", said), re.findall(r"`(test_\w+)`", said)


def test_every_heading_of_a_mistake_has_been_read():
    assert len(MISTAKES) == PAGE.count("\n### ")
    assert PAGE.count("*Caught by*") == len(MISTAKES)


def test_the_table_leads_from_each_symptom_to_its_mistake():
    rows = re.findall(r"^\| \{ref\}`(?:(.+) <([\w-]+)>|([\w-]+))` \| (.+) \|$", PAGE, re.MULTILINE)
    listed = [(named or label, symptom or MISTAKES[label][0], lead) for symptom, named, label, lead in rows]
    assert listed == [(label, symptom, lead) for label, (symptom, lead, _) in MISTAKES.items()]


def test_a_mistake_is_made_in_a_cell_and_what_comes_of_it_is_asserted(subtests):
    for label in MISTAKES:
        with subtests.test(label):
            code = "\n".join(re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```$", MISTAKES[label][2], re.M | re.S))
            assert "# the mistake" in code
            assert re.search(r"^ *assert ", code, re.MULTILINE)


def test_whatever_catches_a_mistake_exists():
    book = "\n".join(file.read_text("utf-8") for file in ROOT.glob("[ac][ph]*/*.md"))
    labels = {*re.findall(r"^\(([\w-]+)\)=$", book, re.M), *re.findall(r"^:label: (ex-[\w-]+)$", book, re.M)}
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "lab").rglob("test_*.py")]
    tests = {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text("utf-8"), re.M)}
    for label in MISTAKES:
        places, named = catchers(label)
        assert places or named, f"nothing catches {label}"
        assert set(places) <= labels, f"{label} leads to {set(places) - labels}"
        assert set(named) <= tests, f"{label} names {set(named) - tests}"
