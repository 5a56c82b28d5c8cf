"""Turn the book's MyST into Markdown that Jupyter and Colab show properly.

`Converter` rewrites one page, cell by cell. A directive or role that it does not know is an error, not a guess: add
it to the tables below.
"""

import re
from collections import Counter
from collections.abc import Callable

from book import NAMES, PROOFS, Block, Book, Page, blocks, numbered_kind
from docutils.nodes import make_id
from listing import find
from notebook_text import RunningText

ADMONITIONS = {
    "admonition": "",
    "attention": "Attention",
    "caution": "Caution",
    "danger": "Danger",
    "epigraph": "",
    "error": "Error",
    "hint": "Hint",
    "important": "Important",
    "margin": "",
    "note": "Note",
    "pull-quote": "",
    "seealso": "See also",
    "sidebar": "",
    "tip": "Tip",
    "topic": "",
    "warning": "Warning",
}
# These take a title of their own; for all others what stands on the first line belongs to the text.
TITLED = ("admonition", "sidebar", "margin", "topic")
LAYOUT = ("card", "dropdown", "grid", "grid-item", "grid-item-card", "tab-item", "tab-set", "div")
NOT_SHOWN = ("bibliography", "contents", "only", "raw", "tableofcontents", "toctree", "exercise-end")

RAW = re.compile(r"^[\s>]*(?:`{3,}|~{3,}|:{3,})\s*\{[\w:-]+\}|(?<!`)\{[A-Za-z][\w:+.-]*\}`[^`]", re.MULTILINE)


def fold(parts: list[str]) -> list[str]:
    """Put Markdown behind a line to click on; nothing stays nothing."""
    text = "\n".join(parts).strip("\n")
    return [f"\n<details>\n<summary>Show the text</summary>\n\n{text}\n\n</details>\n"] if text.strip() else []


class Converter:
    """Rewrites the Markdown cells of one page; it counts what the site numbers as it goes."""

    def __init__(self, book: Book, page: Page) -> None:
        self.book, self.page = book, page
        running = RunningText(book, page)
        self.text, self.inline, self.name_of = running.text, running.inline, running.name_of
        self.count: Counter[str] = Counter()
        # Whether we are inside a solution that spans several cells: its code cells are shown folded.
        self.in_solution = False

    def cell(self, text: str) -> str:
        """Return a Markdown cell's text as plain Markdown."""
        converted = self.convert(self.book.fill_in(text), whole_cell=True)
        if raw := raw_markup(converted):
            raise ValueError(f"this is still MyST and would be shown as it stands: {raw!r}")
        return converted

    def convert(self, text: str, whole_cell: bool = False) -> str:
        """Convert a run of Markdown, directives within directives too."""
        parts: list[str] = []
        # Where in this cell the prose of a solution that spans cells begins; it is folded as its code is.
        hidden = 0 if whole_cell and self.in_solution else None
        found = list(blocks(text))
        for index, block in enumerate(found):
            if block.kind == "text":
                parts.append(self.text(block.text))
            elif block.kind == "verbatim":
                parts.append(block.text)
            elif block.kind in ("math", "directive"):
                rest = any(later.name == "solution-end" for later in found[index + 1 :])
                if hidden is not None and block.name == "solution-end":
                    parts[hidden:] = fold(parts[hidden:])
                    hidden = None
                shown = self.directive(block, rest) if block.kind == "directive" else self.math(block)
                parts.append("\n" + "\n".join(block.indent + line for line in shown.splitlines()) + "\n")
                if whole_cell and self.in_solution and hidden is None:
                    hidden = len(parts)
        if hidden is not None:
            parts[hidden:] = fold(parts[hidden:])
        lines = [line if line.strip() else "" for line in "\n".join(parts).splitlines()]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")

    # --- directives ------------------------------------------------------------------------------------------

    def directive(self, block: Block, solution_ends_here: bool = False) -> str:
        """Return what takes the place of a directive."""
        name = block.name.removeprefix("prf:")
        if name in NOT_SHOWN:
            return ""
        if name in ADMONITIONS:
            return self.admonition(block)
        if name in LAYOUT:
            title = f"**{self.inline(block.argument)}**\n\n" if block.argument and name != "grid" else ""
            return title + self.convert(block.text)
        if name in PROOFS:
            return quote(self.numbered(block) + self.convert(block.text))
        method: Callable[[Block], str] | None = getattr(self, "show_" + name.replace("-", "_"), None)
        if name == "solution-start":
            return self.solution_start(block, solution_ends_here)
        if method is None:
            raise ValueError(
                f"tools/notebooks/notebook_markdown.py cannot show the directive {{{block.name}}} yet: teach it"
            )
        return method(block)

    def number(self, kind: str) -> str:
        """Take the next number of a kind."""
        self.count[kind] += 1
        return self.page.count(kind, self.count[kind])

    def numbered(self, block: Block) -> str:
        """Return the bold heading of a numbered block, such as **Exercise 2.1 (Title).**"""
        kind = numbered_kind(block)
        label = f"{NAMES[kind]} {self.number(kind)}" if kind else block.name.removesuffix("-start").capitalize()
        title = f" ({self.inline(block.argument)})" if block.argument else ""
        return f"**{label}{title}.** "

    def admonition(self, block: Block) -> str:
        title, text = ADMONITIONS[block.name], block.text
        if block.name in TITLED:
            title = self.inline(block.argument)
        elif block.argument:
            text = f"{block.argument}\n{text}"
        return quote((f"**{title}.**\n\n" if title else "") + self.convert(text))

    def math(self, block: Block) -> str:
        tag = rf" \tag{{{self.number('equation')}}}" if numbered_kind(block) else ""
        # As on the site: a blank line separates equations, and line breaks or columns need an environment.
        equations = [" \n".join(part.splitlines()) for part in re.split(r"\n\s*\n", block.text.strip())]
        text = "\\\\\n".join(equations)
        bare, replaced = text, 1
        while replaced:
            bare, replaced = re.subn(r"\\begin\{(\w+\*?)\}(?:(?!\\begin).)*?\\end\{\1\}", "", bare, flags=re.DOTALL)
        if "nowrap" not in block.options and re.search(r"\\\\|(?<!\\)&", bare):
            text = f"\\begin{{aligned}}\n{text}\n\\end{{aligned}}"
        return f"$$\n{text}{tag}\n$$"

    def show_math(self, block: Block) -> str:
        text = "\n\n".join(filter(None, [block.argument, block.text]))
        return self.math(Block("directive", text, name="math", options=block.options))

    def show_exercise(self, block: Block) -> str:
        return (self.numbered(block) + self.convert(block.text)).rstrip()

    show_exercise_start = show_exercise

    def show_solution(self, block: Block) -> str:
        return f"{self.summary(block)}\n\n{self.convert(block.text)}\n\n</details>"

    def solution_start(self, block: Block, ends_here: bool) -> str:
        if ends_here:
            return self.summary(block)
        self.in_solution = True
        return (
            f"**Solution to {self.solved(block)}.** *The solution is folded, its code in the cells that follow: "
            f"try the exercise before you open them.*"
        )

    def show_solution_end(self, block: Block) -> str:
        was_open, self.in_solution = self.in_solution, False
        return "*End of the solution.*" if was_open else "</details>"

    def solved(self, block: Block) -> str:
        return self.name_of(block.argument.strip())

    def summary(self, block: Block) -> str:
        return f"<details>\n<summary><b>Solution to {self.solved(block)}</b></summary>"

    def show_figure(self, block: Block) -> str:
        anchor = make_id(block.options.get("name", ""))
        link = f"[on the page]({self.book.address(self.page, anchor)})"
        where = f"to be moved {link}" if block.name == "live-figure" else f"shown {link}"
        kind = numbered_kind(block)
        title = f"**Figure {self.number(kind)}**, {where}. " if kind else f"*A figure, {where}.* "
        alt = self.inline(block.options.get("alt", ""))
        return quote(f"{title}{self.convert(block.text)}\n\n*What it shows:* {alt}" if alt else title)

    show_live_figure = show_image = show_figure

    def drawing(self, figure: dict, image: dict) -> str:
        """Return the caption of the figure that a code cell draws."""
        caption = f"**Figure {self.number('figure')}.** {self.convert(figure['caption'].strip())}"
        return quote(f"{caption}\n\n*What it shows:* {self.inline(image.get('alt', ''))}" if image else caption)

    def show_listing(self, block: Block) -> str:
        shown = [find(self.book.root, name) for name in block.argument.split()]
        tree = f"{self.book.repository}/blob/{self.book.branch}"
        # Without the line: a notebook is to change when the code does, not when it moves.
        links = [f"[{part.title}]({tree}/{part.place.file})" for part in shown]
        code = "\n\n\n".join(part.code for part in shown)
        return f"{self.listing(block, code, 'python')}\n\n{'; '.join(links)}"

    def show_code_block(self, block: Block) -> str:
        return self.listing(block, block.text, block.argument)

    show_code = show_code_block

    def listing(self, block: Block, text: str, language: str) -> str:
        caption = self.inline(block.options.get("caption", ""))
        title = f"**Listing {self.number('code-block')}.** {caption}\n\n" if caption else ""
        fence = "`" * max(3, *(len(ticks) + 1 for ticks in re.findall(r"`+", text)), 3)
        return f"{title}{fence}{language}\n{text.strip(chr(10))}\n{fence}"

    def table_title(self, block: Block) -> str:
        return f"**Table {self.number('table')}.** {self.inline(block.argument)}\n\n" if block.argument else ""

    def show_table(self, block: Block) -> str:
        return self.table_title(block) + self.convert(block.text)

    def show_list_table(self, block: Block) -> str:
        """A list of lists, `* - a` and `  - b`, becomes a table."""
        title = self.table_title(block)
        rows = [re.split(r"^[ \t]+[-*+][ \t]", "  " + row, flags=re.MULTILINE)[1:]
                for row in re.split(r"^[-*+][ \t]", block.text, flags=re.MULTILINE)[1:]]  # fmt: skip
        cells = [[" ".join(self.inline(cell).split()) for cell in row] for row in rows]
        if not int(block.options.get("header-rows") or 0):
            cells.insert(0, [""] * len(cells[0]))
        cells.insert(1, ["---"] * len(cells[0]))
        return title + "\n".join(f"| {' | '.join(row)} |" for row in cells)

    def show_glossary(self, block: Block) -> str:
        return self.text(block.text)

    def show_proof(self, block: Block) -> str:
        text = self.convert(block.text)
        return quote(f"*Proof.* {text}{chr(10) * 2 if text.endswith('$$') else ' '}∎")


def quote(text: str) -> str:
    """Put text into a block quote; mathematics must not be broken there by the quote's own signs."""
    text = re.sub(r"\$\$.+?\$\$|\$[^$`]+?\$", lambda math: " ".join(math[0].split()), text, flags=re.DOTALL)
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").splitlines())


def raw_markup(text: str) -> str:
    """Return the first directive or role that is left in Markdown outside listings; empty if there is none."""
    prose = re.sub(r"^(\s*>?\s*)(`{3,})(?!\s*\{).*?^\s*>?\s*\2\s*$", "", text, flags=re.DOTALL | re.MULTILINE)
    found = RAW.search(prose)
    return found[0] if found else ""
