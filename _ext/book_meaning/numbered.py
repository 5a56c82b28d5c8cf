"""References to numbered figures, each of which reads a whole page. Here a page is read once for all of them."""

from functools import cache
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment


class PagesReadOnce:
    """An environment whose pages are kept when they have been read; for whoever only looks at them."""

    def __init__(self, env: BuildEnvironment) -> None:
        self.env = env
        self.get_doctree = cache(env.get_doctree)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)


class NumberedDomain(StandardDomain):
    """Sphinx's own domain of labels, figures and terms."""

    pages: PagesReadOnce | None = None

    def resolve_xref(self, env: Any, fromdocname: str, builder: Any, typ: str, *rest: Any) -> nodes.Element | None:
        """Resolve a reference as ever."""
        if typ == "numref":
            env = self.pages = self.pages or PagesReadOnce(env)
        return super().resolve_xref(env, fromdocname, builder, typ, *rest)


def connect(app: Sphinx) -> None:
    app.add_domain(NumberedDomain, override=True)
