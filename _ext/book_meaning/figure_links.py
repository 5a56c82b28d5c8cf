"""The `set-figure` role: a link in a sentence that sets a live figure of the same page.

    Now {set-figure}`move the query to 4 <fig-relations-kernel?query=4>`.

What stands behind the name is the figure's address, as *Copy link* below the figure gives it (`widgets/address.mjs`). A
notebook shows the words alone.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole


class SetFigure(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        parts = re.fullmatch(r"(.+?)\s*<(fig-[\w-]+\?[^>\s]+)>", self.text, re.DOTALL)
        if not parts:
            fault = "set-figure: expected words and an address, as in `move the query <fig-name?query=4>`."
            message = self.inliner.reporter.error(fault, line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        words, address = parts.groups()
        return [nodes.reference("", words, refid=address, internal=True, classes=["sets-figure"])], []


def connect(app: Sphinx) -> None:
    app.add_role("set-figure", SetFigure())
