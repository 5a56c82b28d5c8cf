"""What pages make of words: terms of the glossary, links that set a figure, and outputs that keep their columns."""

import pytest
from book_meaning.figure_links import SetFigure
from book_meaning.glossary_links import linked, pattern
from book_meaning.outputs import is_table
from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser, roles
from docutils.utils import new_document

TERMS = ["multi-head attention", "causal mask", "vocabulary", "attention", "softmax", "logits", "mask", "ReLU"]
FOUND = pattern(TERMS)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Attention needs a softmax.", ["attention", "softmax"]),
        ("two vocabularies, one logit, many masks", ["vocabulary", "logits", "mask"]),
        ("multi-head\nattention with a causal mask", ["multi-head attention", "causal mask"]),
        ("self-attention, unmasked, attention-based", []),
        ("ReLU, but no relu", ["ReLU"]),
    ],
    ids=["singular", "plural", "longest", "whole-words", "capitals"],
)
def test_pattern_finds_terms(text, terms):
    assert [TERMS[int(match.lastgroup[1:])] for match in FOUND.finditer(text)] == terms


def test_linked_links_each_term_once_and_leaves_a_text_without_terms_alone():
    used = {"softmax"}
    pieces = linked("a mask, a softmax, another mask", TERMS, FOUND, used, "chapters/x")
    assert [type(piece) for piece in pieces[::2]] == [nodes.Text, nodes.Text]
    assert pieces[1]["reftarget"] == "mask"
    assert "".join(piece.astext() for piece in pieces) == "a mask, a softmax, another mask"
    assert used == {"softmax", "mask"}
    assert linked("nothing of the kind", TERMS, FOUND, set(), "chapters/x") == []


def read(text: str) -> nodes.document:
    roles.register_local_role("set-figure", SetFigure())
    settings = get_default_settings(Parser)
    settings.report_level = 5
    document = new_document("page", settings)
    Parser().parse(text, document)
    return document


def test_link_leads_to_the_address_of_its_figure():
    text = "Now :set-figure:`move the query to 4 <fig-toy?query=4&k1=-1.5,2>`."
    (link,) = read(text).findall(nodes.reference)
    assert link.astext() == "move the query to 4"
    assert link["refid"] == "fig-toy?query=4&k1=-1.5,2"
    assert link["classes"] == ["sets-figure"]


def test_link_without_settings_or_words_is_an_error():
    for text in (":set-figure:`the figure <fig-toy>`", ":set-figure:`fig-toy?query=4`", ":set-figure:`x <toy?a=1>`"):
        document = read(text)
        assert "expected words" in next(document.findall(nodes.system_message)).astext()
        assert not list(document.findall(nodes.reference))


def test_columns_are_a_table_and_sentences_are_none():
    for printed in (
        "steps  loss\n  100  0.25\n",
        "[[0.5 0.5]\n [1.  0. ]]\n",
        "sum [1.]\n[0.1 0.2]\n[0.3 0.4]",
        "a   1\nb   2\nin all\n",
    ):
        assert is_table(printed), printed
    for printed in (
        "loss 0.25",
        "x has shape (3, 2); expected (..., seq, d_model=4). Are its axes exchanged? Try x.mT, and look again.",
        "one sentence\nand another one, after it\n",
        "the weights: [0.5 0.5]\n",
        "an indented line\n    is no table\n",
    ):
        assert not is_table(printed), printed
