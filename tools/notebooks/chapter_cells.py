"""A page as a notebook: its text and its code, cell by cell."""

import nbformat


def read_cells(text: str) -> nbformat.NotebookNode:
    """Read a page as a notebook; a cell that draws a figure is given a picture, so that Sphinx numbers it."""
    from myst_nb.core.read import read_myst_markdown_notebook  # type: ignore[import-untyped]

    notebook = read_myst_markdown_notebook(text, add_source_map=True)
    for cell in notebook.cells:
        if cell.metadata.get("mystnb", {}).get("figure"):
            cell.outputs = [nbformat.v4.new_output("display_data", {"image/svg+xml": "<svg/>"})]
    return notebook
