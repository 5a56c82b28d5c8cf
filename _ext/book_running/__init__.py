"""Running the book: which chapters are executed, and for how long what they showed is kept."""

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict:
    from .fresh_outputs import choose_cache, execute_and_read_again

    app.connect("config-inited", choose_cache)
    app.connect("env-get-outdated", execute_and_read_again)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
