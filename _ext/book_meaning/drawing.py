"""The `drawing` directive: a numbered figure with one of the schematics in `drawings/`.

    ```{drawing} self_attention_masks
    :name: fig-self-attention-masks

    The caption.
    ```

What it shows, in words, is the title that the file itself carries. On the site the schematic stands in the page itself,
so that it has the page's font, and its colours follow the page from light to dark.
"""

import functools
import re
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

SVG = "http://www.w3.org/2000/svg"


class Drawing(SphinxDirective):
    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict] = {"name": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        path = f"drawings/{self.arguments[0]}.svg"
        file = Path(self.env.srcdir) / path
        if not file.is_file():
            raise self.error(f"drawing: there is no {path}; a function of drawings/ draws it.")
        self.env.note_dependency(str(file))
        title = ElementTree.parse(file).getroot().findtext(f"{{{SVG}}}title")
        figure = nodes.figure("", nodes.image(uri=f"/{path}", alt=title), classes=["drawing"])
        self.set_source_info(figure)
        self.add_name(figure)
        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body)
        if len(body.children) != 1 or not isinstance(body[0], nodes.paragraph):
            raise self.error("drawing: expected a caption of one paragraph.")
        figure += nodes.caption(body[0].rawsource, "", *body[0].children)
        return [figure]


# --- In the page -----------------------------------------------------------------------------------------------


@functools.cache
def palette(style: Path) -> dict[str, str]:
    """For each colour of the light page the property that holds it; `_static/look.css` names them, light ones first."""
    found: dict[str, str] = {}
    if style.is_file():
        for name, colour in re.findall(r"(--pf-[a-z-]+): (#[0-9a-f]{6})\b", style.read_text("utf-8")):
            found.setdefault(colour, f"var({name})")
    return found


def in_page(root: Path, name: str) -> ElementTree.Element:
    """A schematic with the page's colours and without a font of its own; its title becomes its label."""
    colours = palette(root / "_static" / "look.css")
    picture = ElementTree.parse(root / "drawings" / f"{name}.svg").getroot()
    for title in picture.findall(f"{{{SVG}}}title"):
        picture.set("aria-label", title.text or "")
        picture.remove(title)
    picture.attrib.pop("font-family", None)
    for part in picture.iter():
        part.tag = part.tag.removeprefix(f"{{{SVG}}}")
        for attribute in part.attrib.keys() & {"fill", "stroke"}:
            if part.get("class") != "photograph":  # which is the same in light and dark
                part.set(attribute, colours.get(part.get(attribute, ""), part.get(attribute, "")))
    return picture


def written(picture: ElementTree.Element) -> nodes.raw:
    return nodes.raw("", ElementTree.tostring(picture, encoding="unicode").replace("\n", ""), format="html")


class PutIntoPage(SphinxPostTransform):
    """Put each schematic itself in the place of its image, be that the directive's or another."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for image in list(self.document.findall(nodes.image)):
            file = Path(image["uri"])
            if file.parent.name == "drawings" and file.suffix == ".svg":
                self.app.builder.images[image["uri"]] = file.name  # the notebooks show it from the site
                image.replace_self(written(in_page(Path(self.app.srcdir), file.stem)))


def connect(app: Sphinx) -> None:
    app.add_directive("drawing", Drawing)
    app.add_post_transform(PutIntoPage)
