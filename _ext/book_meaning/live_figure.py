"""The `live-figure` directive: a numbered figure that the reader can move.

    ```{live-figure} attention
    :name: fig-attention
    :alt: what a sighted reader sees, in words
    :model: decoder
    :lit: ids embedding
    :text: . Anna is in the hall . where is Anna ?

    The caption, then perhaps further paragraphs.
    ```

`:lit:` names the parts of the machine that the reader has built so far; the last of them is open. `:text:` is
what it begins with, the question of its chapter.
`:model:` names the stored model that the figure runs, if it runs one; the reader fetches it with the first use. Further
names, each after a blank, are models that it can be switched to.

The page shows its static frame, `widgets/attention.png`, or the words of `:alt:` if `make frames` has not made one
yet, until `widgets/attention.mjs` has been loaded and its `mount(element)` has drawn the figure. Without JavaScript,
in print, or when the page is opened from a folder instead of a server, the frame stays.

Beside a module may lie what its figure draws before a model is fetched, `widgets/stage.safetensors`. Its page fetches
both at once, and shows no frame meanwhile.
"""

import hashlib
import re
import shutil
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from book_meaning.packaged_models import copy_packaged, file_of_model

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
        "text": directives.unchanged_required,
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
            file = file_of_model(Path(self.env.srcdir), name)
            if not file.is_file():
                raise self.error(f"live-figure: there is no {file.name} in lab/.")
            self.env.note_dependency(str(file.relative_to(self.env.srcdir)))
            sizes.append(str(file.stat().st_size))
            versions.append(hashlib.sha256(file.read_bytes()).hexdigest()[:8])
        told = {"model": names, "bytes": sizes, "version": versions}
        if recorded(Path(self.env.srcdir), self.arguments[0]).is_file():
            told["recorded"] = []
        told |= {key: self.options[key].split() for key in ("lit", "text") if key in self.options}
        return "".join(f' data-{key}="{escape(" ".join(each))}"' for key, each in told.items()) if names else ""


def visit_html(self, node: live_figure) -> None:
    attributes = f'data-widget="{node["stem"]}"{node["attributes"]}'
    self.body.append(f'<div class="live-figure" {attributes}><div class="live-figure-fallback">')


def depart_html(self, node: live_figure) -> None:
    self.body.append(
        '<noscript><p class="live-figure-note">With JavaScript this figure can be moved.</p></noscript></div></div>\n'
    )


def visit_plain(self, node: live_figure) -> None:
    """Other writers need nothing around the fallback."""


IMPORTED = re.compile(r'^(?:import|} from).*"(\.[^"]+)"', re.M)


def recorded(source: Path, stem: str) -> Path:
    """What a figure draws before its model is fetched, if there is such a file."""
    return source / "widgets" / f"{stem}.safetensors"


def modules(file: Path) -> Iterator[Path]:
    """A module and all that it imports, each once."""
    seen: set[Path] = set()
    waiting = [file]
    while waiting:
        if (module := waiting.pop()) not in seen:
            seen.add(module)
            yield module
            waiting += [(module.parent / name).resolve() for name in IMPORTED.findall(module.read_text("utf-8"))]


def fetched_at_once(app: Sphinx, doctree: nodes.document, address) -> str:
    """Links that have the browser fetch what a recorded figure begins with, before it has read the first module."""
    widgets = (Path(app.srcdir) / "widgets").resolve()
    links = []
    for stem in {figure["stem"] for figure in doctree.findall(live_figure)}:
        if (numbers := recorded(Path(app.srcdir), stem)).is_file():
            where = address(f"_static/widgets/{numbers.name}", 1)
            links.append(f'<link rel="preload" href="{where}" as="fetch" crossorigin="anonymous" />')
            for module in modules(widgets / f"{stem}.mjs"):
                where = address(f"_static/widgets/{module.relative_to(widgets).as_posix()}", 1)
                links.append(f'<link rel="modulepreload" href="{where}" />')
    return "".join(f"{link}\n" for link in links)


def add_loader(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Load the loader and the widgets' styles on those pages only that have a live figure."""
    if doctree is not None and next(doctree.findall(live_figure), None) is not None:
        app.add_js_file("widgets/live_figure.mjs", type="module")
        context["metatags"] = context.get("metatags", "") + fetched_at_once(app, doctree, context["pathto"])
        if (Path(app.srcdir) / "widgets" / STYLES).is_file():
            app.add_css_file(f"widgets/{STYLES}")


def copy_widgets(app: Sphinx) -> None:
    """Copy modules and models on every build: a changed widget changes no page that Sphinx would write again."""
    if app.builder.format != "html":
        return
    static, source = Path(app.outdir) / "_static", Path(app.srcdir)
    for folder in ("widgets", "models"):
        shutil.rmtree(static / folder, ignore_errors=True)
    if (source / "widgets").is_dir():
        shutil.copytree(source / "widgets", static / "widgets", ignore=shutil.ignore_patterns("*.png"))
    copy_packaged(source, static / "models")
    for file in source.glob("lab/*/*.safetensors"):
        shutil.copy(file, static / "models")
    (static / "widgets").mkdir(parents=True, exist_ok=True)
    shutil.copy(LOADER, static / "widgets")


def connect(app: Sphinx) -> None:
    plain = (visit_plain, visit_plain)
    app.add_node(live_figure, html=(visit_html, depart_html), latex=plain, text=plain, man=plain, texinfo=plain)
    app.add_directive("live-figure", LiveFigure)
    app.connect("builder-inited", copy_widgets)
    app.connect("html-page-context", add_loader)
