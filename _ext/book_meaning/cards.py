"""Where a page says `lab/<name>`, a recorded run, it leads to the card of that run.

The directive `card-index` becomes a list of all cards. They stand in no table of contents, which every page has.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

PAGE, CARDS = "appendix/recorded_runs", "appendix/cards/"
RUN = re.compile(r"lab/(\w+)")


class LinkCards(SphinxPostTransform):
    default_priority = 5
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            found = RUN.fullmatch(literal.astext())
            if found is None or isinstance(literal.parent, nodes.reference):
                continue
            card = CARDS + found[1]
            if card in self.env.found_docs and card != self.env.docname:
                address = self.app.builder.get_relative_uri(self.env.docname, card)
                literal.replace_self(nodes.reference("", "", literal.deepcopy(), refuri=address, internal=True))


class card_index(nodes.General, nodes.Element):
    """Stands where the list will be: only when all pages have been read are their titles known."""


class CardIndex(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return [card_index()]


class ListCards(SphinxPostTransform):
    default_priority = 5

    def run(self, **kwargs) -> None:
        for index in list(self.document.findall(card_index)):
            cards = sorted(name for name in self.env.found_docs if name.startswith(CARDS))
            index.replace_self(nodes.bullet_list("", *map(self.item, cards)))

    def item(self, card: str) -> nodes.list_item:
        address = self.app.builder.get_relative_uri(self.env.docname, card)
        link = nodes.reference("", "", *self.env.titles[card].deepcopy().children, refuri=address, internal=True)
        run = nodes.literal("", f"lab/{card.removeprefix(CARDS)}")
        return nodes.list_item("", nodes.paragraph("", "", link, nodes.Text(": "), run))


def outdated(app: Sphinx, env: BuildEnvironment, added: set, changed: set, removed: set) -> list[str]:
    """The list depends on all cards."""
    is_of_cards = any(name.startswith(CARDS) for name in added | changed | removed)
    return [PAGE] if is_of_cards and PAGE in env.found_docs else []


def connect(app: Sphinx) -> None:
    app.connect("env-get-outdated", outdated)
    app.add_directive("card-index", CardIndex)
    app.add_post_transform(ListCards)
    app.add_post_transform(LinkCards)
