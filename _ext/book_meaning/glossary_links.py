"""Link each term of the glossary where a chapter first uses it.

Only running text is looked through: no headings, captions, tables, exercises, code, and no text that is a link already.
A term in the plural counts. Words that everyday English uses as well are left to the author, who writes {term}`value`
where the term is meant; the front matter of the glossary names them under `everyday`.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform

GLOSSARY, FOLDER = "appendix/glossary", "chapters/"
RUNNING = (
    nodes.document | nodes.section | nodes.paragraph | nodes.list_item | nodes.bullet_list | nodes.enumerated_list
    | nodes.emphasis | nodes.strong
)  # fmt: skip


def terms(env: BuildEnvironment) -> list[str]:
    """The terms to look for, the longest first."""
    objects = env.get_domain("std").objects
    found = {name for (kind, name), (docname, _) in objects.items() if kind == "term" and docname == GLOSSARY}
    everyday = env.metadata.get(GLOSSARY, {}).get("everyday", "")
    return sorted(found - set(everyday.split(", ")), key=lambda term: (-len(term), term))


def forms(term: str) -> str:
    """A pattern for a term in the singular and in the plural; a name in capitals stands as it is."""
    words = re.escape(term).replace(r"\ ", r"\s+")
    if any(letter.isupper() for letter in term[1:]):
        return f"{words}s?"
    if term.endswith("y"):
        return f"(?i:{words[:-1]}(?:y|ies))"
    return f"(?i:{words.removesuffix('s')}(?:s|es)?)"


def pattern(names: list[str]) -> re.Pattern[str]:
    """Whole words only: the attention of self-attention is none."""
    choices = "|".join(f"(?P<t{number}>{forms(name)})" for number, name in enumerate(names))
    return re.compile(rf"(?<![\w–-])(?:{choices})(?![\w–-])")


def running_texts(document: nodes.document) -> Iterator[nodes.Text]:
    """The texts of paragraphs, with what is emphasised in them."""
    for text in list(document.findall(nodes.Text)):
        parent = text.parent
        while isinstance(parent, RUNNING) and parent.parent is not None:
            parent = parent.parent
        if isinstance(parent, nodes.document) and not isinstance(text.parent, nodes.document):
            yield text


def reference(term: str, shown: str, page: str) -> addnodes.pending_xref:
    """What the role would write."""
    inline = nodes.inline(shown, shown, classes=["xref", "std", "std-term"])
    return addnodes.pending_xref(
        "", inline, refdomain="std", reftype="term", reftarget=term, refdoc=page, refexplicit=True, refwarn=True
    )


def linked(text: str, names: list[str], found: re.Pattern[str], used: set[str], page: str) -> list[nodes.Node]:
    """A text in pieces, in which each term that is not yet used has become a link."""
    pieces: list[nodes.Node] = []
    end = 0
    for match in found.finditer(text):
        term = names[int(str(match.lastgroup)[1:])]
        if term not in used:
            used.add(term)
            pieces += [nodes.Text(text[end : match.start()]), reference(term, match[0], page)]
            end = match.end()
    return [*pieces, nodes.Text(text[end:])] if pieces else []


class LinkTerms(SphinxPostTransform):
    """Before Sphinx resolves references: these are then its own."""

    default_priority = 6
    formats = ("html",)

    def run(self, **kwargs) -> None:
        names = terms(self.env)
        if not names or not self.env.docname.startswith(FOLDER):
            return
        found = pattern(names)
        used = {xref["reftarget"] for xref in self.document.findall(addnodes.pending_xref) if xref["reftype"] == "term"}
        for text in running_texts(self.document):
            if pieces := linked(text.astext(), names, found, used, self.env.docname):
                text.parent.replace(text, pieces)


def write_again(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The chapters, whenever the glossary has been read anew."""
    changed = GLOSSARY in getattr(env, "glossary_read", [])
    return [docname for docname in env.found_docs if changed and docname.startswith(FOLDER)]


def note_read(app: Sphinx, env: BuildEnvironment, added: set, changed: set, removed: set) -> list[str]:
    env.glossary_read = [*added, *changed]
    return []


def connect(app: Sphinx) -> None:
    app.add_post_transform(LinkTerms)
    app.connect("env-get-outdated", note_read)
    app.connect("env-updated", write_again)
