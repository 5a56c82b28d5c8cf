"""What the pages mean: equations and their claims, listings, terms, schematics, live figures, outputs and more.

The site and the notebooks are made from pages that this extension has read.
"""

from importlib import import_module

from sphinx.application import Sphinx

PARTS: tuple[str, ...] = ("addresses", "cards", "chapter_map", "citations", "claims", "drawing", "equation_index")
PARTS += ("facts", "figure_links", "fixed_spaces", "glossary_links", "listing", "live_figure", "made", "numbered")
PARTS += ("outputs", "registers", "shared_picture", "translations")


def setup(app: Sphinx) -> dict:
    # Only now, so that whoever asks for one part loads that part alone.
    reference = ("docstrings",) if "autodoc-process-docstring" in app.events.events else ()
    for part in (*PARTS, *reference):
        import_module(f".{part}", __name__).connect(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
