"""Spaces at which no line ends: between a number and its %, and before the small link to a test."""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

FIXED = "\u00a0"
AS_IT_IS = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)


class FixSpaces(SphinxPostTransform):
    default_priority = 800
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for text in list(self.document.findall(nodes.Text)):
            if isinstance(text.parent, AS_IT_IS):
                continue
            after = text.next_node(siblings=True, descend=False)
            fixed = re.sub(r"(?<=\d) (?=%)|^ (?=%)", FIXED, text.astext())
            if isinstance(after, nodes.superscript) and "claim" in after["classes"]:
                fixed = re.sub(r"\s+$", FIXED, fixed)
            if fixed != text:
                text.parent.replace(text, nodes.Text(fixed))


def connect(app: Sphinx) -> None:
    app.add_post_transform(FixSpaces)
