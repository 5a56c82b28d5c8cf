"""The weight of the site: formulas and search without foreign scripts, the head of each page, what is sent with it."""

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict:
    # Here, so that whoever asks for one part loads that part alone.
    from . import late_layout, mathematics, page_head, search_index
    from .finish import finish

    mathematics.connect(app)
    app.connect("html-page-context", search_index.add_script)
    app.connect("html-page-context", late_layout.keep_places)
    page_head.connect(app)
    # After Sphinx and the theme have copied their files.
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
