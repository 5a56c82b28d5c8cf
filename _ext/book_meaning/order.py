"""The chapters in the order of the book, with their numbers: `_toc.yml` alone says both."""

from pathlib import Path

import yaml
from sphinx.environment import BuildEnvironment

FOLDER = "chapters/"


def chapters(root: Path) -> dict[str, str]:
    """The pages in `chapters/` in the book's order, each with its number; the primer and appendices have none."""
    found, count = {}, 0
    for part in yaml.safe_load((root / "_toc.yml").read_text("utf-8"))["parts"]:
        for each in part["chapters"]:
            if each["file"].startswith(FOLDER):
                count += bool(part.get("numbered"))
                found[each["file"]] = str(count) if part.get("numbered") else ""
    return found


def lessons(root: Path) -> list[str]:
    """The primer and the chapters with a number."""
    found = chapters(root)
    last = max(place for place, number in enumerate(found.values()) if number)
    return list(found)[: last + 1]


def as_read(env: BuildEnvironment) -> list[str]:
    """All pages in the order of the tables of contents, as Sphinx has read them; then those in none, by name."""

    def below(page: str) -> list[str]:
        return [page, *(each for part in env.toctree_includes.get(page, []) for each in below(part))]

    listed = dict.fromkeys(below(env.config.root_doc))
    return [*(page for page in listed if page in env.found_docs), *sorted(env.found_docs - listed.keys())]
