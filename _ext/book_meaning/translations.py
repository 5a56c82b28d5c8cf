"""What Sphinx's catalogues of messages do not reach by themselves: captions, titles of exercises, formulas.

Sphinx takes for a message what knows its place in the source, and it translates paragraphs alone.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.locale import init
from sphinx.transforms import SphinxTransform
from sphinx.util.i18n import docname_to_domain
from sphinx_exercise.nodes import exercise_subtitle


class TellPlaces(SphinxTransform):
    """Captions that directives have made, and cells of tables within them, stand where the directive stands."""

    default_priority = 5  # before messages are collected and replaced

    def apply(self, **kwargs: object) -> None:
        for node in self.document.findall(lambda node: isinstance(node, nodes.caption | nodes.paragraph | nodes.title)):
            if not node.source:
                node.source = self.document["source"]
                node.line = node.parent.line or 0
            node.rawsource = node.rawsource or node.astext()


class TranslateWords(SphinxTransform):
    """Titles of exercises, and formulas for the words in them."""

    default_priority = 21  # after Sphinx has replaced what it can

    def apply(self, **kwargs: object) -> None:
        domain = docname_to_domain(self.env.docname, self.config.gettext_compact)
        folders = [str(self.env.srcdir / folder) for folder in self.config.locale_dirs]
        catalogue, there = init(folders, self.config.language, domain)
        kinds = nodes.math_block | exercise_subtitle
        for node in list(self.document.findall(lambda node: isinstance(node, kinds))) if there else ():
            shown = catalogue.gettext(node.astext())
            node.clear()
            node += nodes.Text(shown)


def connect(app: Sphinx) -> None:
    app.add_transform(TellPlaces)
    app.add_transform(TranslateWords)
