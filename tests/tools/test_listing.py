"""Listings: what is shown of a definition, which one a name means, and what the site makes of it."""

import ast
import re
from pathlib import Path
from textwrap import dedent

import pytest
from book_meaning.listing import WIDTH, computing_part, find, fitted
from count_listings import computing_lines
from toy_site import build, write

MODULE = '''\
"""A module."""

from math import sqrt


@checked
def root(x: float) -> float:
    """Return the root."""
    return sqrt(x)


class Adder:
    """Add, again and again."""

    total: float

    def add(self, x):
        """Add."""
        return root(x)

    def root(self): ...


def twice(x): ...
'''


def shown(source: str) -> str:
    """What is shown of the last definition of a module."""
    source = dedent(source).strip()
    return computing_part(source, ast.parse(source).body[-1])


def test_wide_lines_are_broken_and_narrow_ones_stay():
    narrow = "def f(a,  b):\n    return a"
    assert fitted(narrow) == narrow
    names = ", ".join(f"argument_{n}" for n in range(9))
    comment = "# " + "because " * 15
    broken = fitted(f"def f({names}):\n    {comment}\n    return g({names})").splitlines()
    assert max(map(len, broken)) <= WIDTH
    assert ast.unparse(ast.parse("\n".join(broken))) == f"def f({names}):\n    return g({names})"
    assert " ".join(line.strip(" #") for line in broken if "#" in line) == comment.strip("# ")


def test_docstrings_go_and_comments_and_formatting_stay():
    source = '''
        import numpy as np

        @cache
        @checked
        def f(x, *,
              y=1):  # odd, but so it stands
            """One line.

            And more.
            """

            # Why.
            z = (x +
                 y)

            return z  # at last
    '''
    expected = """
        @cache
        def f(x, *, y=1):
            # Why.
            z = (x +
                 y)

            return z  # at last
    """
    assert shown(source) == dedent(expected).strip()


def test_signature_over_several_lines_is_shown_by_its_names():
    source = '''
        class A:
            def f(
                self, x: Float[Array, "seq d"], /, *rest: int, scale: float | None = None
            ) -> Float[Array, "seq d"]:
                """Return it."""
                return x
    '''
    assert shown(source) == "class A:\n    def f(self, x, /, *rest, scale=None):\n        return x"


CHECKS = [
    "checks.check_positive(x=x)",
    "self._check_shape(\n    x,\n)",
    "if x < 0:\n    message = 'negative'\n    raise ValueError(message)\nelif x > 9:\n    raise TypeError(x)",
    "if x < 0:\n    check_whole(x)",
    "for number in x:\n    if number < 0:\n        raise ValueError('negative')",
    "# Negative numbers have no root.\n# Zero has.\ncheck_positive(x=x)",
]


def test_what_only_checks_is_left_out_wherever_it_stands():
    before, after = "x = x + 1", "y = x"
    for check in CHECKS:
        for lines in ([check, "", before, after], [before, "", check, "", after], [before, check, after]):
            text = shown("def f(x):\n" + "\n".join(f"    {line}" for part in lines for line in part.split("\n")))
            assert text.replace("\n\n", "\n") == f"def f(x):\n    {before}\n    {after}", check
            assert "\n\n\n" not in text
            assert ":\n\n" not in text


def test_what_also_computes_stays():
    for body in (
        "if x:\n    y = 1\nelse:\n    raise ValueError('no x')",
        "if x:\n    raise ValueError('x')\nelse:\n    y = 1",
        "x = check_x(x)",
        "raise NotImplementedError",
        "for y in x:\n    check_y(y)\n    z = y",
    ):
        text = "def f(x):\n" + "\n".join(f"    {line}" for line in body.split("\n"))
        assert shown(text) == text.replace("    check_y(y)\n        ", "    ")


def test_class_is_shown_without_its_checks():
    source = '''
        class A(Module):
            """A."""

            x: int
            """An x."""

            def __check_init__(self):
                check_positive(x=self.x)

            def f(self):
                """Return it."""
                return self.x

            @property
            def g(self):
                """For others to define."""
    '''
    expected = """
        class A(Module):
            x: int

            def f(self):
                return self.x

            @property
            def g(self):
                ...
    """
    assert shown(source) == dedent(expected).strip()


def test_counter_counts_what_computes():
    code = "class A:\n    x: int\n\n    def f(self,\n        y):\n        import math\n\n        # Why.\n"
    code += "        z = (1 +\n            2)\n\n        def g():\n            return z\n\n        return g()"
    assert computing_lines(code) == 4
    assert computing_lines(shown(code)) == 4


# --- Names ------------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path) -> Path:
    files = {
        "src/toy/rooms/roots.py": MODULE,
        "src/toy/other.py": "from .rooms.roots import Adder\n\ndef outer():\n    def add(): ...\n\ndef twice(): ...\n",
        "src/toy/exercises/roots.py": "def outer(): ...\n",
        "index.md": "# Toy\n\n```{listing} root Adder.add\n```\n",
    }
    write(tmp_path, files)
    return tmp_path


def test_find_takes_as_much_of_a_name_as_is_unique(root):
    for name, full in {
        "root": "toy.rooms.roots.root",
        "Adder.add": "toy.rooms.roots.Adder.add",
        "toy.rooms.roots.Adder.root": "toy.rooms.roots.Adder.root",
        "outer": "toy.other.outer",
    }.items():
        assert find(root, name).place.name == full
    method = find(root, "Adder.add")
    assert (method.code, method.place.line) == ("def add(self, x):\n    return root(x)", 17)
    assert method.title == "Adder in rooms/roots.py"


@pytest.mark.parametrize(
    ("name", "told"), [("twice", "toy.other.twice, toy.rooms"), ("other.add", "it has toy.rooms"), ("sqrt", "no sqrt")]
)
def test_find_refuses_a_name_that_fits_none_or_several(root, name, told):
    with pytest.raises(LookupError, match=told):
        find(root, name)


# --- The site ---------------------------------------------------------------------------------------------------


def test_site_shows_the_code_with_a_link_and_follows_the_source(root):
    assert build(root)[1] == ""
    page = (root / "_build/index.html").read_text("utf-8")
    tree = "https://github.com/owner/name/blob/main/src/toy/rooms/roots.py"
    assert page.count('<div class="highlight-python notranslate">') == 1
    assert f'href="{tree}#L7">rooms/roots.py, line 7</a>; <a' in page
    assert f'href="{tree}#L17">Adder in rooms/roots.py, line 17</a></p>' in page
    (root / "src/toy/rooms/roots.py").write_text("\n" + MODULE)
    assert build(root)[1] == ""
    assert "rooms/roots.py, line 8</a>" in (root / "_build/index.html").read_text("utf-8")
    (root / "index.md").write_text("# Toy\n\n```{listing} nothing\n```\n")
    assert re.search(r"index\.md:3: .*the package defines no nothing", build(root)[1])
