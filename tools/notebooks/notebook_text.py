"""Turn MyST's roles, links and images in running text into plain Markdown."""

import re

from book import NAMES, Book, Page
from pybtex.database import Entry

# One pass from left to right: mathematics and code are left alone; roles, images and links are rewritten.
INLINE = re.compile(
    r"(?P<math>(?<!\\)\$\$.+?\$\$|(?<![\\$])\$(?![\s$])[^$]+?(?<![\s\\])\$(?!\d))"
    r"|(?P<role>\{[A-Za-z][\w:+.-]*\})?(?P<tick>(?<!`)`+)(?!`)(?P<body>.+?)(?<!`)(?P=tick)(?!`)"
    r"|(?P<image>!?)\[(?P<text>(?:[^\[\]`\\]|\\.|`[^`]*`)*)\]\((?P<href>[^)\s]*)\)"
    r"|\[\^(?P<note>[\w-]+)\](?P<colon>:?)",
    re.DOTALL,
)


class RunningText:
    """Converts the running text of one page; every link inside the book leads to the site."""

    def __init__(self, book: Book, page: Page) -> None:
        self.book, self.page = book, page

    def text(self, text: str) -> str:
        """Convert running text: definition lists become bold terms, the rest is a matter of roles and links."""
        text = re.sub(r"^(?![#>|\s:*-])(\S.*)\n:[ \t]+", r"**\1**  \n", text, flags=re.MULTILINE)
        return self.inline(text)

    def inline(self, text: str) -> str:
        """Convert the roles, links and images of a run of text."""
        return INLINE.sub(self._inline, text)

    def _inline(self, found: re.Match[str]) -> str:
        if found["role"]:
            return self.role(found["role"][1:-1], " ".join(found["body"].split()))
        if found["image"] == "!":
            return f"*{found['text']}* ([shown on the page]({self.book.address(self.page)}))"
        if found["href"] is not None:
            return self.link(self.inline(found["text"]), found["href"])
        if found["note"]:
            return f"<sup>{found['note']}</sup>"
        return found[0]

    def role(self, role: str, body: str) -> str:
        """Return what takes the place of a role."""
        text, target = split_role(body)
        if role in ("eq", "numref", "prf:ref", "ref", "doc"):
            if role == "doc":
                page = self.book.find_page(target, self.page)
                return f"[{text or self.inline(page.title)}]({self.book.address(page)})"
            label = self.book.labels.get(target)
            number = label.number if label else ""
            if text:
                shown = text.replace("%s", number).replace("{number}", number)
            elif role == "ref" and label and label.kind == "section":
                shown = self.inline(label.title)
            else:
                shown = self.name_of(target)
            return self.link(shown, f"#{target}")
        if role.startswith("cite"):
            return self.cite(role, body)
        if role == "term":
            return text or target
        if role == "math":
            return f"${body}$"
        if role in ("sub", "sup", "kbd"):
            return f"<{role}>{body}</{role}>"
        if role == "abbr":
            return re.sub(r"\s*\(.*\)$", "", body)
        if role in ("code", "file", "command", "samp") or role.startswith("py:") or role in ("func", "class", "mod"):
            return f"`{text or target.lstrip('~')}`"
        raise ValueError(f"tools/notebooks/notebook_markdown.py cannot show the role {{{role}}}`{body}` yet: teach it")

    def name_of(self, target: str) -> str:
        """Return how the text names a labelled thing: (2.3), Figure 2.1, Section 2.2, …"""
        try:
            label = self.book.labels[target]
        except KeyError:
            raise ValueError(f"nothing in the book has the label {target!r}") from None
        if label.kind == "equation":
            return f"({label.number})"
        return f"{NAMES.get(label.kind, label.kind.capitalize())} {label.number}".rstrip()

    def cite(self, role: str, keys: str) -> str:
        """Name sources by author and year, each with a link to where it can be read."""
        shown = []
        for key in (key.strip() for key in keys.split(",")):
            if key not in self.book.sources:
                raise ValueError(f"no source {key!r} in {', '.join(self.book.bibliographies)}")
            entry = self.book.sources[key]
            people = entry.persons.get("author") or entry.persons.get("editor") or []
            last = [" ".join([*person.prelast_names, *person.last_names]).strip("{}") for person in people]
            names = " and ".join(last) if len(last) < 3 else f"{last[0]} et al."
            year = entry.fields.get("year", "")
            text = f"{names} ({year})" if role == "cite:t" else f"{names}, {year}"
            shown.append(f"[{text}]({self.source_address(entry)})")
        return ", ".join(shown) if role == "cite:t" else f"({'; '.join(shown)})"

    def source_address(self, entry: Entry) -> str:
        """Return where a source can be read: at its publisher's, on arXiv, or in the book's own list."""
        fields = entry.fields
        if "doi" in fields:
            return "https://doi.org/" + fields["doi"]
        if "eprint" in fields:
            return "https://arxiv.org/abs/" + fields["eprint"]
        pages = [page for page in self.book.pages.values() if "{bibliography}" in page.text]
        return fields.get("url") or self.book.address(pages[0] if pages else self.page)

    def link(self, text: str, href: str) -> str:
        """Lead every link inside the book to the site; a label on this very page needs no link."""
        if re.match(r"[a-z]+:", href):
            return f"[{text}]({href})"
        name, _, anchor = href.partition("#")
        label = self.book.labels.get(anchor or name)
        if label and (not name or not anchor):
            shown = text or (self.inline(label.title) if label.kind == "section" else self.name_of(anchor or name))
            near = label.page is self.page and label.kind != "section"
            return shown if near else f"[{shown}]({self.book.address(label.page, label.anchor)})"
        if not name:
            return f"[{text}]({self.book.address(self.page, anchor)})"
        file = (self.book.root / self.page.name).parent / name
        if file.is_file() and file.suffix != ".md":
            path = file.resolve().relative_to(self.book.root.resolve()).as_posix()
            return f"[{text}]({self.book.repository}/blob/{self.book.branch}/{path})"
        page = self.book.find_page(name, self.page)
        return f"[{text or self.inline(page.title)}]({self.book.address(page, anchor)})"


def split_role(body: str) -> tuple[str, str]:
    """Split `text <target>` into its two parts; the text is empty where only a target is given."""
    found = re.fullmatch(r"(.*?)\s*<([^<>]+)>", body)
    return (found[1], found[2]) if found else ("", body)
