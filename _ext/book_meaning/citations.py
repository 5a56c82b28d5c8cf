"""Citations by author and year: Vaswani et al. (2017) in the text, the same year in the list.

Adds a referencing style with round brackets, `author_year_round`, and a bibliography style whose labels are
authors and year, `author_year_list`.
"""

from dataclasses import dataclass, field

import pybtex.plugin
import sphinxcontrib.bibtex.plugin
from pybtex.backends.plaintext import Backend
from pybtex.style.formatting.plain import Style as PlainStyle
from pybtex.style.labels import BaseLabelStyle
from sphinx.application import Sphinx
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle


def round_brackets() -> BracketStyle:
    return BracketStyle(left="(", right=")", sep="; ")


@dataclass
class RoundReferenceStyle(AuthorYearReferenceStyle):
    bracket_textual: BracketStyle = field(default_factory=round_brackets)
    bracket_parenthetical: BracketStyle = field(default_factory=round_brackets)
    bracket_author: BracketStyle = field(default_factory=round_brackets)
    bracket_label: BracketStyle = field(default_factory=round_brackets)
    bracket_year: BracketStyle = field(default_factory=round_brackets)


def short_name(entry) -> str:
    people = [" ".join(person.prelast_names + person.last_names) for person in entry.persons["author"]]
    people = [name.replace("{", "").replace("}", "") for name in people]
    if len(people) > 2 or "others" in people:
        return f"{people[0]} et al."
    return " and ".join(people)


class AuthorYearLabels(BaseLabelStyle):
    def format_labels(self, sorted_entries):
        for entry in sorted_entries:
            yield f"{short_name(entry)} {entry.fields['year']}"


class ListStyle(PlainStyle):
    default_label_style = AuthorYearLabels


def connect(app: Sphinx) -> None:
    referencing = "sphinxcontrib.bibtex.style.referencing"
    sphinxcontrib.bibtex.plugin.register_plugin(referencing, "author_year_round", RoundReferenceStyle)
    pybtex.plugin.register_plugin("pybtex.style.formatting", "author_year_list", ListStyle)
    # Known already: for each citation it would be looked for in every installed package, which takes seconds.
    pybtex.plugin.register_plugin("pybtex.backends", "plaintext", Backend, force=True)
