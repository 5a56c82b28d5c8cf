"""What the pages mean: equations and their claims, listings, terms, schematics, live figures, outputs and more.

The site and the notebooks are made from pages that this extension has read.
"""

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict:
    # Here, so that whoever asks for one part loads that part alone.
    from . import (
        addresses,
        chapter_map,
        citations,
        docstrings,
        drawing,
        equation_index,
        facts,
        figure_links,
        glossary_links,
        listing,
        live_figure,
        numbered,
        outputs,
        registers,
        shared_picture,
        translations,
    )

    parts = [
        addresses,
        chapter_map,
        citations,
        drawing,
        equation_index,
        facts,
        figure_links,
        glossary_links,
        listing,
        live_figure,
        numbered,
        outputs,
        registers,
        shared_picture,
        translations,
    ]
    if "autodoc-process-docstring" in app.events.events:  # where there is a reference of the package
        parts.append(docstrings)
    for part in parts:
        part.connect(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
