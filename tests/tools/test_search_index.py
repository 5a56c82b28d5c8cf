"""The search looks through sections, terms and entries: their words, without code, and formulas as one types them."""

import pytest
from book_weight.search_index import entries, name_sections, typed
from docutils import nodes
from sphinx import addnodes


@pytest.mark.parametrize(
    ("tex", "line"),
    [
        (r"\frac{1}{\sqrt{d_k}}", "1/√d_k"),
        (r"\operatorname{softmax}(QK^{\mathsf T})", "softmax(QK^T)"),
        (r"X \in \mathbb{R}", "X ∈ R"),
        (r"\frac{a + b}{2}", "(a+b)/2"),
        (r"\hat y", "y"),
    ],
)
def test_typed(tex, line):
    assert typed(tex) == line


def section(name: str, title: str, *content: nodes.Node) -> nodes.section:
    return nodes.section("", nodes.title("", title), *content, ids=[name])


def test_entries_are_sections_with_their_own_words():
    inner = section("inner", "Inner", nodes.paragraph("", "deep"))
    formula = nodes.math("", "d_k")
    said = nodes.paragraph("", "", nodes.Text("of "), formula)
    code, equation = nodes.literal_block("", "code"), nodes.math_block("", "x")
    document = nodes.document(None, None, "", section("outer", "Outer", said, code, equation, inner))
    assert list(entries(document)) == [("outer", "Outer", "of d_k"), ("inner", "Inner", "deep")]


def test_a_reference_to_a_section_is_its_title():
    options = {"refdomain": "std", "reftype": "ref", "reftarget": "sec-tokens", "refexplicit": False}
    reference = addnodes.pending_xref("", nodes.inline("", "sec-tokens"), **options)
    document = nodes.document(None, None, "", section("outer", "Outer", nodes.paragraph("", "", reference)))
    labels = {"sec-tokens": ("chapters/tokens", "sec-tokens", "Tokens")}
    assert list(entries(name_sections(document, labels))) == [("outer", "Outer", "Tokens")]


def test_entries_keep_exercises_in_their_section():
    exercise = nodes.section("", nodes.paragraph("", "Prove it."), ids=["exercise-content"])
    document = nodes.document(None, None, "", section("outer", "Outer", exercise))
    assert list(entries(document)) == [("outer", "Outer", "Prove it.")]


def test_entries_are_terms_and_their_definitions():
    term = nodes.term("", "key", ids=["term-key"])
    item = nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph("", "What is compared.")))
    glossary = addnodes.glossary("", nodes.definition_list("", item))
    document = nodes.document(None, None, "", section("words", "Words", glossary))
    assert list(entries(document)) == [("words", "Words", ""), ("term-key", "key", "What is compared.")]
