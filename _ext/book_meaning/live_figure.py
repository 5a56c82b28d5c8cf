"""The `live-figure` directive: a numbered figure that the reader can move.

    ```{live-figure} attention
    :name: fig-attention
    :alt: what a sighted reader sees, in words
    :model: decoder
    :lit: ids embedding

    The caption, then perhaps further paragraphs.
    ```

`:lit:` names the parts of the machine that the reader has built so far; the last of them is open.
`:model:` names the stored model that the figure runs, if it runs one; the reader fetches it with the first use. Further
names, each after a blank, are models that it can be switched to.

The page shows its static frame, `widgets/attention.png`, or the words of `:alt:` if `make frames` has not made one
yet, until `widgets/attention.mjs` has been loaded and its `mount(element)` has drawn the figure. Without JavaScript,
in print, or when the page is opened from a folder instead of a server, the frame stays.
"""

import hashlib
import shutil
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)
STYLES = "widgets.css"
LOADER = Path(__file__).with_name("live_figure.mjs")


class live_figure(nodes.General, nodes.Element):
    """Holds the static frame as its only child; writers other than HTML show just that."""


class LiveFigure(SphinxDirective):
    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict] = {
        "alt": directives.unchanged_required,
        "lit": directives.unchanged_required,
        "model": directives.unchanged_required,
        "name": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        stem = self.arguments[0]
        module = f"widgets/{stem}.mjs"
        if not (Path(self.env.srcdir) / module).is_file():
            LOGGER.warning("live-figure: there is no %s", module, location=self.get_location())
        alt = self.options.get("alt", "")
        if not alt:
            raise self.error("live-figure: say in :alt: what a sighted reader sees.")

        frame = f"widgets/{stem}.png"
        if there := (Path(self.env.srcdir) / frame).is_file():
            self.env.note_dependency(frame)
        fallback = nodes.image(uri=f"/{frame}", alt=alt, loading="lazy") if there else nodes.paragraph("", alt)
        figure = nodes.figure("", live_figure("", fallback, stem=stem, attributes=self._model()))
        self.set_source_info(figure)
        self.add_name(figure)

        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body)
        if not body.children or not isinstance(body[0], nodes.paragraph):
            raise self.error("live-figure: the caption, a paragraph, is missing.")
        caption, *rest = body.children
        figure += nodes.caption(caption.rawsource, "", *caption.children)
        if rest:
            figure += nodes.legend("", *rest)
        return [figure]

    def _model(self) -> str:
        """What the page tells the figure of its models: name, bytes of the file, and a mark of what they are, for each.

        A browser keeps the file from one visit to the next, until the mark is another one.
        """
        names, sizes, versions = self.options.get("model", "").split(), [], []
        for name in names:
            file = Path(self.env.srcdir) / "models" / f"{name}.safetensors"
            if not file.is_file():
                raise self.error(f"live-figure: there is no models/{file.name}.")
            self.env.note_dependency(f"models/{file.name}")
            sizes.append(str(file.stat().st_size))
            versions.append(hashlib.sha256(file.read_bytes()).hexdigest()[:8])
        told = {"model": names, "bytes": sizes, "version": versions}
        if "lit" in self.options:
            told["lit"] = self.options["lit"].split()
        return "".join(f' data-{key}="{" ".join(each)}"' for key, each in told.items()) if names else ""


def visit_html(self, node: live_figure) -> None:
    attributes = f'data-widget="{node["stem"]}"{node["attributes"]}'
    self.body.append(f'<div class="live-figure" {attributes}><div class="live-figure-fallback">')


def depart_html(self, node: live_figure) -> None:
    self.body.append(
        '<noscript><p class="live-figure-note">With JavaScript this figure can be moved.</p></noscript></div></div>\n'
    )


def visit_plain(self, node: live_figure) -> None:
    """Other writers need nothing around the fallback."""


def add_loader(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Load the loader and the widgets' styles on those pages only that have a live figure."""
    if doctree is not None and next(doctree.findall(live_figure), None) is not None:
        app.add_js_file("widgets/live_figure.mjs", type="module")
        if (Path(app.srcdir) / "widgets" / STYLES).is_file():
            app.add_css_file(f"widgets/{STYLES}")


def copy_widgets(app: Sphinx) -> None:
    """Copy modules and models on every build: a changed widget changes no page that Sphinx would write again."""
    if app.builder.format != "html":
        return
    static, source = Path(app.outdir) / "_static", Path(app.srcdir)
    for folder, unwanted in {"widgets": "*.png", "models": "*.[!s]*"}.items():  # of models, the .safetensors
        shutil.rmtree(static / folder, ignore_errors=True)
        if (source / folder).is_dir():
            shutil.copytree(source / folder, static / folder, ignore=shutil.ignore_patterns(unwanted))
    (static / "widgets").mkdir(parents=True, exist_ok=True)
    shutil.copy(LOADER, static / "widgets")


def connect(app: Sphinx) -> None:
    plain = (visit_plain, visit_plain)
    app.add_node(live_figure, html=(visit_html, depart_html), latex=plain, text=plain, man=plain, texinfo=plain)
    app.add_directive("live-figure", LiveFigure)
    app.connect("builder-inited", copy_widgets)
    app.connect("html-page-context", add_loader)
