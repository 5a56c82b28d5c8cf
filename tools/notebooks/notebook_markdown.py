"""Write the nodes of a page, as Sphinx has resolved them, as Markdown that Jupyter and Colab show properly.

A kind of node that is not known here is a complaint at its line, not a guess: teach it.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.locale import admonitionlabels
from sphinx.util import logging

if TYPE_CHECKING:
    from notebook_builder import NotebookBuilder

LOGGER = logging.getLogger(__name__)
NOT_SHOWN = {"comment", "compound", "index", "raw", "substitution_definition", "target", "toctree"}
# What stands before and after the text of these.
AROUND = {"emphasis": "* *", "strong": "** **", "term": "** **", "rubric": "** **", "subscript": "<sub> </sub>"}
AROUND |= dict.fromkeys(["superscript", "footnote_reference"], "<sup> </sup>")
AROUND |= dict.fromkeys(["paragraph", "caption", "inline", "abbreviation", "PassthroughTextElement"], " ")
BLOCKS = {"definition", "entry", "footnote", "glossary", "legend", "list_item", "section"}
ALIGNMENT = {"text-right": "---:", "text-center": ":---:"}


def join(parts: Iterable[str]) -> str:
    """Put blocks below each other."""
    return "\n\n".join(part for part in (part.strip("\n") for part in parts) if part)


def quote(text: str) -> str:
    """Put text into a block quote; an equation must not be broken there by the quote's own signs."""
    text = re.sub(r"\$\$.+?\$\$", lambda equation: " ".join(equation[0].split()), text, flags=re.DOTALL)
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def fold(summary: str, text: str) -> str:
    """Put Markdown behind a line to click on."""
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


class Markdown:
    """Shows the nodes of one page; the method `show_paragraph` shows a `paragraph`."""

    def __init__(self, builder: "NotebookBuilder", docname: str, document: nodes.document) -> None:
        self.builder, self.docname, self.document = builder, docname, document
        self.page = builder.get_target_uri(docname)

    def show(self, node: nodes.Node) -> str:
        """Return a node as Markdown."""
        kind = type(node).__name__
        if kind in NOT_SHOWN:
            return ""
        if kind in AROUND:
            before, after = AROUND[kind].split(" ")
            return before + self.inline(node) + after
        if kind in BLOCKS:
            return self.blocks(node)
        if method := getattr(self, f"show_{kind}", None):
            return method(node)
        if isinstance(node, nodes.Admonition):
            return self.show_admonition(node)
        advice = "a notebook cannot show this %s yet: teach tools/notebooks/notebook_markdown.py"
        LOGGER.warning(advice, kind, location=node)
        return ""

    def inline(self, node: nodes.Element) -> str:
        """Return what runs on in a line."""
        return "".join(map(self.show, node.children))

    def blocks(self, node: nodes.Element) -> str:
        """Return what stands one below the other."""
        return join(map(self.show, node.children))

    def name(self, kind: str, node: nodes.Element, name: str = "%s") -> str:
        """Return Sphinx's name for what it has numbered, such as Figure 2.1; nothing if it has no number."""
        number = self.builder.fignumbers.get(kind, {}).get((node["ids"] or [""])[0], ())
        return self.builder.config.numfig_format.get(kind, name) % ".".join(map(str, number)) if number else ""

    # --- in a line -----------------------------------------------------------------------------------------------

    def show_Text(self, node: nodes.Text) -> str:
        return re.sub(r"[\\`*$]|(?<!\w)_|_(?!\w)|<(?=[A-Za-z/!])", r"\\\g<0>", node.astext())

    def show_math(self, node: nodes.math) -> str:
        return f"${' '.join(node.astext().split())}$"

    def show_literal(self, node: nodes.literal) -> str:
        text = node.astext()
        ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
        space = " " if "`" in (text[:1], text[-1:]) else ""
        return f"{ticks}{space}{text}{space}{ticks}"

    def show_reference(self, node: nodes.reference) -> str:
        """Lead into the book's site, or to where a cited work can be read; what is near needs no link."""
        text, address = self.inline(node), node.get("refuri") or f"#{node['refid']}"
        if "listing-source" in node.parent.get("classes", []):
            # Without the line: a notebook is to change when the code does, not when it moves.
            text, address = text.split(", line ")[0], address.split("#")[0]
        if address.startswith("#"):
            if not isinstance(self.document.ids.get(address[1:]), nodes.section):
                return text
            address = self.page + address
        return f"[{text}]({self.builder.sources.get(address, address)})"

    show_number_reference = show_reference

    def show_download_reference(self, node: nodes.Element) -> str:
        options = self.builder.config.html_theme_options
        tree = f"{options['repository_url']}/blob/{options['repository_branch']}"
        path, _ = self.builder.env.relfn2path(node["reftarget"], self.docname)
        return f"[{self.inline(node)}]({tree}/{path})"

    def show_image(self, node: nodes.image) -> str:
        return f"*{node.get('alt', 'A picture')}* ([shown on the page]({self.page}))"

    # --- blocks --------------------------------------------------------------------------------------------------

    def show_title(self, node: nodes.title) -> str:
        level, above = 0, node.parent
        while above is not None:
            level, above = level + isinstance(above, nodes.section), above.parent
        return f"{'#' * level} {self.inline(node)}"

    def show_math_block(self, node: nodes.math_block) -> str:
        # As on the site: a blank line separates equations, and line breaks or columns need an environment.
        equations = filter(None, re.split(r"\n\s*\n", node.astext().strip()))
        text = "\\\\\n".join(" \n".join(equation.splitlines()) for equation in equations)
        if not node["nowrap"] and re.search(r"\\\\|(?<!\\)&", text):
            text = f"\\begin{{aligned}}\n{text}\n\\end{{aligned}}"
        tag = self.name("displaymath", node, r" \tag{%s}")
        return f"$$\n{text}{tag}\n$$"

    def show_literal_block(self, node: nodes.literal_block) -> str:
        text = node.astext().strip("\n")
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
        return f"{fence}{node.get('language', '')}\n{text}\n{fence}"

    def show_container(self, node: nodes.container) -> str:
        if node.get("design_component") == "dropdown":
            title, *body = node.children
            return fold(f"<b>{title.astext()}</b>", join(map(self.show, body)))
        if not node.get("literal_block"):
            return self.blocks(node)
        caption, code = map(self.show, node.children)
        return f"**{self.name('code-block', node)}.** {caption}\n\n{code}"

    def show_bullet_list(self, node: nodes.Element) -> str:
        items = []
        for number, item in enumerate(node.children, start=node.get("start", 1)):
            sign = f"{number}. " if isinstance(node, nodes.enumerated_list) else "- "
            items.append(sign + re.sub(r"\n(?!\n)", "\n" + " " * len(sign), self.blocks(item)))
        return ("\n\n" if any("\n\n" in item for item in items) else "\n").join(items)

    show_enumerated_list = show_bullet_list

    def show_definition_list(self, node: nodes.definition_list) -> str:
        return join("  \n".join(map(self.show, item.children)) for item in node.children)

    def show_block_quote(self, node: nodes.block_quote) -> str:
        return quote(self.blocks(node))

    def show_attribution(self, node: nodes.attribution) -> str:
        return f"— {self.inline(node)}"

    def show_table(self, node: nodes.table) -> str:
        title = "".join(self.inline(part) for part in node.children if isinstance(part, nodes.title))
        rows = [row.children for row in node.findall(nodes.row)]
        if not any(node.findall(nodes.thead)):
            rows.insert(0, [nodes.entry() for _ in rows[0]])
        lines = [[" ".join(self.blocks(cell).replace("|", r"\|").split()) for cell in row] for row in rows]
        lines.insert(1, [ALIGNMENT.get("".join(cell["classes"]), "---") for cell in rows[-1]])
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return join([f"**{self.name('table', node)}.** {title}" if title else "", table])

    def show_figure(self, node: nodes.figure, drawn_above: bool = False) -> str:
        """Name and caption a figure, and say what it shows."""
        picture, *caption = node.children
        where = "to be moved" if type(picture).__name__ == "live_figure" else "shown"
        image = next(picture.findall(nodes.image), picture)
        uri = image.get("uri", "")
        here = uri.startswith(("drawings/", "widgets/"))
        is_drawing = uri.startswith("drawings/")
        place = ".**" if drawn_above or is_drawing else f"**, {where} [on the page]({self.page}#{node['ids'][0]})."
        text = f"**{self.name('figure', node) or 'A figure'}{place} {join(map(self.show, caption))}"
        if here:  # seen before anything has run: the site has it, wherever the notebook was opened
            address = f"{self.builder.config.html_baseurl}_images/{uri.partition('/')[2]}"
            return join([f"![{image.get('alt')}]({address})", quote(text)])
        alt = f"*What it shows:* {picture.get('alt') or self.blocks(picture)}"
        return quote(join([text, alt]))

    def show_admonition(self, node: nodes.Element) -> str:
        """Quote a note or an aside, a theorem or a proof."""
        kind = type(node).__name__.removesuffix("_node")
        title = "".join(self.inline(part) for part in node.children if isinstance(part, nodes.title))
        text = join(self.show(part) for part in node.children if not isinstance(part, nodes.title))
        if kind == "proof":
            text = self.blocks(node.children[0]).replace("Proof.", "*Proof.*", 1)
            return quote(text + ("\n\n∎" if text.endswith("$$") else " ∎"))
        if "realtype" in node:
            name = self.name(node["realtype"], node) or node["realtype"]
            return quote(f"**{name.capitalize()}{title}.** {text}")
        title = title or admonitionlabels.get(kind, "")
        return quote(join([f"**{title}.**" if title else "", text]))

    show_sidebar = show_topic = show_admonition

    def exercise_title(self, node: nodes.Element) -> str:
        return f"**{self.name('exercise', node, 'Exercise %s') or 'Exercise'}{self.inline(node.children[0])}.**"

    def show_exercise_node(self, node: nodes.Element) -> str:
        return f"{self.exercise_title(node)} {self.blocks(node.children[1])}"

    show_exercise_enumerable_node = show_exercise_node

    def show_solution_node(self, node: nodes.Element) -> str:
        return fold(f"<b>{node['title']}</b>", self.blocks(node.children[1]))
