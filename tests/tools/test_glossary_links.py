"""Terms of the glossary in running text: what counts as one, and what becomes of a sentence."""

import pytest
from book_meaning.glossary_links import linked, pattern
from docutils import nodes

TERMS = ["multi-head attention", "causal mask", "vocabulary", "attention", "softmax", "logits", "mask", "ReLU"]
FOUND = pattern(TERMS)


def found(text: str) -> list[str]:
    return [TERMS[int(match.lastgroup[1:])] for match in FOUND.finditer(text)]


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
    assert found(text) == terms


def test_linked_links_each_term_once():
    used = {"softmax"}
    pieces = linked("a mask, a softmax, another mask", TERMS, FOUND, used, "chapters/x")
    assert [type(piece) for piece in pieces[::2]] == [nodes.Text, nodes.Text]
    assert pieces[1]["reftarget"] == "mask"
    assert "".join(piece.astext() for piece in pieces) == "a mask, a softmax, another mask"
    assert used == {"softmax", "mask"}


def test_linked_leaves_a_text_without_terms_alone():
    assert linked("nothing of the kind", TERMS, FOUND, set(), "chapters/x") == []
