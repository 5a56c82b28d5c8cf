"""Claims: a sentence that depends on an order or a sign names the test that would fail if it were not so.

    With eight heads it is ahead with every seed {claim}`staircase.eight_heads_beat_one`.

The claim is the test `test_eight_heads_beat_one` in `lab/staircase`; a name that is not there fails the build. The
directive `claim-index` on the page PAGE becomes a list of all, by chapter.
"""

import functools
import re
from itertools import groupby
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective, SphinxRole

from .addresses import source_address
from .equation_claims import Place, definitions
from .equation_index import chapter_title
from .facts import nearest
from .order import as_read

PAGE = "appendix/claims"


@functools.cache
def _tests(file: Path, root: Path, changed: float) -> dict[str, Place]:
    found = {place.name: place for _, place in definitions(root, file, "")}
    return {name.removeprefix("test_"): place for name, place in found.items() if name.startswith("test_")}


def claim(env: BuildEnvironment, name: str) -> Place:
    """Return where the test of a claim stands; raise `LookupError` where there is none."""
    run, _, said = name.partition(".")
    root = Path(env.srcdir)
    files = sorted((root / "lab" / run).glob("test_*.py"))
    if not files:
        raise LookupError(f"there are no tests in lab/{run}.")
    found: dict[str, Place] = {}
    for file in files:
        env.note_dependency(str(file))
        found |= _tests(file, root, file.stat().st_mtime)
    if said not in found:
        raise LookupError(f"lab/{run} has no test_{said}; it has {nearest(said, found)}.")
    return found[said]


def claims_of(document: nodes.document) -> list[nodes.superscript]:
    """The small links behind sentences, which lead to tests."""
    return [node for node in document.findall(nodes.superscript) if "claim" in node["classes"]]


class Claim(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            place = claim(self.env, self.text)
        except LookupError as error:
            self.env.note_reread()
            message = self.inliner.reporter.error(f"claim: {error.args[0]}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        address = source_address(self.config, place.file, place.line)
        words = place.name.removeprefix("test_").replace("_", " ")
        link = nodes.reference("", "test", refuri=address, reftitle=f"Tested: {words}")
        ids = [nodes.make_id(f"claim-{self.text}-{self.env.new_serialno('claim')}")]
        return [nodes.superscript("", "", link, classes=["claim"], ids=ids, claim=self.text)], []


# --- The list of all ------------------------------------------------------------------------------------------


class claim_index(nodes.General, nodes.Element):
    """Stands where the list will be: only when all pages have been read is it known what goes into it."""


class ClaimIndex(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return [claim_index()]


class MakeList(SphinxPostTransform):
    default_priority = 5

    def run(self, **kwargs) -> None:
        for index in list(self.document.findall(claim_index)):
            index.replace_self(self.sections())

    def sections(self) -> list[nodes.Node]:
        pages = (name for name in as_read(self.env) if name.startswith(("chapters/", "appendix/")))
        claims = ((name, each) for name in pages for each in claims_of(self.env.get_doctree(name)))
        found = []
        for docname, each in groupby(claims, lambda pair: pair[0]):
            lines = (self.line(docname, node) for _, node in each)
            title = nodes.title("", chapter_title(self.env, docname))
            found.append(nodes.section("", title, nodes.bullet_list("", *lines), ids=[nodes.make_id(f"of-{docname}")]))
        return found

    def line(self, docname: str, node: nodes.superscript) -> nodes.list_item:
        """The sentence, which leads to its place, and the folder of its test, which leads to that."""
        place = f"{self.app.builder.get_relative_uri(self.env.docname, docname)}#{node['ids'][0]}"
        sentence = nodes.reference("", said_by(node), refuri=place, internal=True)
        folder = f"test in lab/{node['claim'].partition('.')[0]}"
        test = nodes.reference("", folder, refuri=node[0]["refuri"], reftitle=node[0]["reftitle"])
        return nodes.list_item("", nodes.paragraph("", "", sentence, nodes.Text(" "), test))


def said_by(node: nodes.superscript) -> str:
    """The sentence in which a claim stands, without what it links to."""
    block = node.parent
    while not isinstance(block, nodes.TextElement | nodes.entry) or isinstance(block, nodes.Inline):
        block = block.parent
    # By their identities, since texts that say the same are equal.
    links = {id(text): each for each in claims_of(block) for text in each.findall(nodes.Text)}
    marks = {text: "\0" if each is node else "\1" for text, each in links.items()}
    marks |= {id(text): "…" for formula in block.findall(nodes.math) for text in formula.findall(nodes.Text)}
    text = "".join(marks.get(id(each), each.astext()) for each in block.findall(nodes.Text))
    sentences = re.split(r"(?<=[.!?:])\s+(?=[A-Z])", " ".join(text.split()))
    return re.sub(r"\s*[\0\1]", "", next(each for each in sentences if "\0" in each))


def outdated(app: Sphinx, env: BuildEnvironment, added: set, changed: set, removed: set) -> list[str]:
    """The list depends on all pages."""
    return [PAGE] if PAGE in env.found_docs and (added or changed or removed) else []


def connect(app: Sphinx) -> None:
    app.add_node(claim_index)
    app.add_role("claim", Claim())
    app.add_directive("claim-index", ClaimIndex)
    app.add_post_transform(MakeList)
    app.connect("env-get-outdated", outdated)
