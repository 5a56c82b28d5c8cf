"""Read the book's sources: which pages there are, their directives, and the number of everything that has one.

The site's numbers are Sphinx's. With `numfig_secnum_depth: 1` the rule is: on a page that the table of contents
numbers, the k-th equation (figure, table, exercise, …) of chapter c is c.k; on all other pages it is k, counted on
through them in the order of the table of contents. `tests/test_notebooks.py` proves this rule against Sphinx itself.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import ClassVar

import yaml
from docutils.nodes import make_id
from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.directives import parse_directive_text
from myst_parser.parsers.mdit import create_md_parser
from pybtex.database import Entry, parse_file

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "_ext"))

NAMES = {"figure": "Figure", "table": "Table", "code-block": "Listing", "exercise": "Exercise"}
PROOFS = (
    "algorithm",
    "conjecture",
    "corollary",
    "criterion",
    "definition",
    "example",
    "lemma",
    "observation",
    "property",
    "proposition",
    "remark",
    "theorem",
)
LISTINGS = ("math", "code-cell", "code-block", "code")
NAMES |= {name: name.capitalize() for name in PROOFS}


@dataclass
class Block:
    """A piece of a page: `kind` is text, verbatim, directive, math, target or nothing (a comment)."""

    kind: str
    text: str
    indent: str = ""
    name: str = ""
    argument: str = ""
    options: dict[str, str] = field(default_factory=dict)


@dataclass
class Label:
    """What a label stands before: the page, the kind of thing, its number and its title."""

    page: "Page"
    kind: str
    number: str
    title: str
    anchor: str


@dataclass
class Page:
    """A page of the book; `number` is its chapter number, or empty."""

    name: str
    number: str
    text: str
    title: str = ""
    before: Counter[str] = field(default_factory=Counter)

    def count(self, kind: str, index: int) -> str:
        """Return the number that the site gives to the page's `index`-th equation, figure, …, from 1."""
        return f"{self.number}.{index}" if self.number else str(self.before[kind] + index)


class _AnyDirective:
    """Tells MyST how to split a directive of which nothing is known."""

    option_spec: ClassVar = {"any": True}
    required_arguments = 0
    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True


def _parser():
    extensions = {"amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"}
    config = MdParserConfig(enable_extensions=extensions, dmath_double_inline=True, disable_syntax=["inline"])
    return create_md_parser(config, RendererHTML)


def blocks(text: str) -> Iterator[Block]:
    """Split Markdown into its blocks, in order; what is only text stays together, as it stands."""
    lines = text.splitlines()
    done = 0
    for token in _parser().parse(text + "\n"):
        block = _block(token)
        if block is None or token.map[0] < done:
            continue
        start, end = token.map
        if start > done:
            yield Block("text", "\n".join(lines[done:start]))
        if not block.text and block.kind == "verbatim":
            block.text = "\n".join(lines[start:end]).rstrip()
        elif block.kind != "verbatim":
            block.indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
        yield block
        done = end
    if done < len(lines):
        yield Block("text", "\n".join(lines[done:]))


def _block(token) -> Block | None:
    if token.type in ("fence", "colon_fence") and (found := re.match(r"\{([^}\s]+)\}", token.info.strip())):
        first_line = token.info.strip()[found.end() :].strip()
        parts = parse_directive_text(_AnyDirective, first_line, token.content, validate_options=False)
        given = parts.options
        if found[1] == "code-cell":
            # A cell that draws may say so: its picture is then a numbered figure of the site.
            drawing = given.get("mystnb") or {}
            given = {**drawing.get("figure", {}), **drawing.get("image", {})}
        options = {name: str(value or "") for name, value in given.items()}
        return Block("directive", "\n".join(parts.body), "", found[1], " ".join(parts.arguments), options)
    if token.type in ("math_block", "math_block_label"):
        label = token.info if token.type == "math_block_label" else ""
        return Block("math", token.content.strip("\n"), options={"label": label})
    if token.type == "myst_target":
        return Block("target", token.content)
    if token.type == "myst_line_comment":
        return Block("nothing", "")
    if token.type == "amsmath":
        raise ValueError(f"write this equation in a {{math}} directive, not bare: {token.content[:40]!r}")
    if token.type in ("fence", "code_block", "html_block", "front_matter"):
        return Block("verbatim", "")
    return None


def numbered_kind(block: Block) -> str:
    """Return the kind of number that the site gives to this block; empty if it gives none."""
    if "nonumber" in block.options:
        return ""
    if block.name == "math" or block.kind == "math":
        return "equation" if block.options.get("label") else ""
    kind = block.name.removeprefix("prf:").removesuffix("-start")
    if kind == "live-figure" or (kind == "figure" and block.text.strip()):
        return "figure"
    if kind == "code-cell" and block.options.get("caption"):
        return "figure"
    if kind in ("table", "list-table", "csv-table") and block.argument:
        return "table"
    if kind in ("code-block", "code") and block.options.get("caption"):
        return "code-block"
    return kind if kind in ("exercise", *PROOFS) else ""


def label_of(block: Block) -> str:
    """Return the label that a block carries; empty if none."""
    return block.options.get("label") or block.options.get("name") or ""


class Book:
    """All pages of the book at `root`, with their labels and numbers."""

    def __init__(self, root: Path = ROOT) -> None:
        from addresses import site_address

        self.root = root
        config = yaml.safe_load((root / "_config.yml").read_text())
        self.repository: str = config["repository"]["url"].rstrip("/")
        self.branch: str = config["repository"]["branch"]
        self.site: str = site_address(self.repository)
        self.bibliographies: list[str] = config.get("bibtex_bibfiles", [])
        self.labels: dict[str, Label] = {}
        self.pages = {page.name: page for page in self._table_of_contents()}
        counts: Counter[str] = Counter()
        for page in self.pages.values():
            page.before = Counter() if page.number else counts.copy()
            here = self._label(page)
            if not page.number:
                counts += here

    def _table_of_contents(self) -> Iterator[Page]:
        toc = yaml.safe_load((self.root / "_toc.yml").read_text())
        yield self._page(toc["root"], "")
        for part in toc.get("parts", [toc]):
            for number, entry in enumerate(part.get("chapters", []), start=1):
                yield self._page(entry["file"], str(number) if part.get("numbered") else "")

    def _page(self, name: str, number: str) -> Page:
        file = self.root / f"{name}.md"
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        return Page(name, number, self.fill_in(text))

    def fill_in(self, text: str) -> str:
        """Write out the two addresses that a page may name."""
        return text.replace("{{ repository }}", self.repository).replace("{{ site }}", self.site)

    def _label(self, page: Page) -> Counter[str]:
        """Enter the page's labels; return how many numbered things of each kind it holds."""
        counts: Counter[str] = Counter()
        targets: list[str] = []

        def walk(text: str) -> None:
            for block in blocks(text):
                if block.kind == "target":
                    targets.append(block.text)
                    continue
                if block.kind == "text":
                    headings(block.text)
                    continue
                if kind := numbered_kind(block):
                    counts[kind] += 1
                names = [*targets, label_of(block)]
                targets.clear()
                number = page.count(kind, counts[kind]) if kind else ""
                title = block.argument if kind in ("exercise", *PROOFS) else ""
                for name in filter(None, names):
                    anchor = f"equation-{make_id(name)}" if kind == "equation" else make_id(name)
                    self.labels[name] = Label(page, kind or block.name, number, title, anchor)
                if block.kind == "directive" and block.name not in LISTINGS:
                    walk(block.text)

        def headings(text: str) -> None:
            for marks, title in re.findall(r"^(#+)\s+(.+?)\s*$", text, re.MULTILINE):
                counts["section"] += len(marks) == 2
                page.title = page.title or title
                number = page.number and (page.number if len(marks) == 1 else f"{page.number}.{counts['section']}")
                for name in targets:
                    self.labels[name] = Label(page, "section", number, title, make_id(name))
                targets.clear()

        walk(page.text)
        return counts

    def address(self, page: Page, anchor: str = "") -> str:
        """Return the page's address on the site."""
        return f"{self.site}{page.name}.html" + (f"#{anchor}" if anchor else "")

    def find_page(self, name: str, seen_from: Page) -> Page:
        """Return the page that `seen_from` calls by this relative name, with or without `.md`."""
        parts: list[str] = [] if name.startswith("/") else list(PurePosixPath(seen_from.name).parent.parts)
        for part in PurePosixPath(name.removesuffix(".md")).parts:
            if part == "..":
                parts.pop()
            elif part != "/":
                parts.append(part)
        try:
            return self.pages["/".join(parts)]
        except KeyError:
            raise ValueError(f"there is no page {name!r} (seen from {seen_from.name})") from None

    @cached_property
    def sources(self) -> dict[str, Entry]:
        """The entries of the bibliography, by key."""
        entries: dict[str, Entry] = {}
        for file in self.bibliographies:
            if (self.root / file).is_file():
                entries |= parse_file(str(self.root / file)).entries
        return entries
