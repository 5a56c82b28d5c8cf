"""Make the package's docstrings and signatures read well in the API reference.

- `eq-...` in backticks becomes a link to the equation, with its number.
- Shapes stay, module paths go: `queries: Float[Array, 'q_seq d_k']`.
- A bullet list may follow its heading line directly, as it does in the code.
- A page may refer to a function by the name that readers use: {py:func}`plainformer.attend`.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx

import plainformer

PACKAGE = "plainformer"
EQUATION = re.compile(r"(?<!`)`(eq-[a-z0-9-]+)`(?!`)")
PACKAGES = "collections|equinox|jax|jaxlib|jaxtyping|matplotlib|numpy|os|pathlib|plainformer|typing"
MODULE_PATH = re.compile(rf"~?\b(?:{PACKAGES})\.(?:\w+\.)*(?=[A-Za-z_])")
RANDOM_KEY = re.compile(r"Key\[Array, ''\](?: \| UInt32\[Array, '\d'\])+")
AXES = re.compile(r"""(?<=, )(['"])\s*([^'"]*?)\s*\1(?=\])""")


def tidy_docstring(app: Sphinx, what: str, name: str, obj, options, lines: list[str]) -> None:
    tidy: list[str] = []
    for line in lines:
        starts_list = line.startswith("- ") and tidy and tidy[-1] and not tidy[-1].startswith(("- ", "  "))
        if starts_list:
            tidy.append("")
        tidy.append(EQUATION.sub(r"equation :eq:`\1`", line))
    lines[:] = tidy


def shorten(annotations: str) -> str:
    short = AXES.sub(r"'\2'", MODULE_PATH.sub("", annotations))
    # jaxtyping spells its own alias out.
    return RANDOM_KEY.sub("PRNGKeyArray", short)


def tidy_signature(app: Sphinx, what: str, name: str, obj, options, signature, returns):
    return signature and shorten(signature), returns and shorten(returns)


def find_public_name(app: Sphinx, env, node: nodes.Element, content: nodes.Node):
    """Resolve `plainformer.attend` to where it is documented, `plainformer.attention.self_attention.attend`."""
    package, _, name = node.get("reftarget", "").partition(".")
    if node.get("refdomain") != "py" or package != PACKAGE or not hasattr(plainformer, name):
        return None
    thing = getattr(plainformer, name)
    target = f"{thing.__module__}.{thing.__qualname__}"
    return env.get_domain("py").resolve_xref(env, node["refdoc"], app.builder, node["reftype"], target, node, content)


def leave_types_plain(app: Sphinx, env, node: nodes.Element, content: nodes.Node):
    """Show the name of a type that another package documents, without a link and without a complaint."""
    foreign = not node.get("reftarget", "").startswith(PACKAGE)
    if node.get("refdomain") == "py" and node.get("reftype") in {"class", "exc", "obj"} and foreign:
        return content
    return None


def connect(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", tidy_docstring)
    app.connect("autodoc-process-signature", tidy_signature)
    app.connect("missing-reference", find_public_name)
    app.connect("missing-reference", leave_types_plain)
