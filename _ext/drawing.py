"""The `drawing` directive: a numbered figure with one of the schematics in `drawings/`.

    ```{drawing} self_attention_masks
    :name: fig-self-attention-masks

    The caption.
    ```

What it shows, in words, is the title that the file itself carries.
"""

from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Drawing(SphinxDirective):
    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict] = {"name": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        path = f"drawings/{self.arguments[0]}.svg"
        file = Path(self.env.srcdir) / path
        if not file.is_file():
            raise self.error(f"drawing: there is no {path}; `make drawings` writes them.")
        self.env.note_dependency(str(file))
        title = ElementTree.parse(file).getroot().findtext("{http://www.w3.org/2000/svg}title")
        figure = nodes.figure("", nodes.image(uri=f"/{path}", alt=title), classes=["drawing"])
        self.set_source_info(figure)
        self.add_name(figure)
        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body)
        if len(body.children) != 1 or not isinstance(body[0], nodes.paragraph):
            raise self.error("drawing: expected a caption of one paragraph.")
        figure += nodes.caption(body[0].rawsource, "", *body[0].children)
        return [figure]


def setup(app: Sphinx) -> dict:
    app.add_directive("drawing", Drawing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
