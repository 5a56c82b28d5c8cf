"""Links in sentences that set a live figure, and how they are refused."""

from book_meaning.figure_links import SetFigure
from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser, roles
from docutils.utils import new_document

GOOD = "Now :set-figure:`move the query to 4 <fig-toy?query=4&k1=-1.5,2>`."


def read(text: str) -> nodes.document:
    roles.register_local_role("set-figure", SetFigure())
    settings = get_default_settings(Parser)
    settings.report_level = 5
    document = new_document("page", settings)
    Parser().parse(text, document)
    return document


def test_link_leads_to_the_address_of_its_figure():
    (link,) = read(GOOD).findall(nodes.reference)
    assert link.astext() == "move the query to 4"
    assert link["refid"] == "fig-toy?query=4&k1=-1.5,2"
    assert link["classes"] == ["sets-figure"]


def test_without_settings_or_words_it_is_an_error():
    for text in (":set-figure:`the figure <fig-toy>`", ":set-figure:`fig-toy?query=4`", ":set-figure:`x <toy?a=1>`"):
        document = read(text)
        assert "expected words and an address" in next(document.findall(nodes.system_message)).astext()
        assert not list(document.findall(nodes.reference))
