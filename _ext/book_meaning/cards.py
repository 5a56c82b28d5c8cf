"""Where a page says `lab/<name>`, a recorded run, it leads to the card of that run."""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

CARDS = "appendix/cards/"
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


def connect(app: Sphinx) -> None:
    app.add_post_transform(LinkCards)
