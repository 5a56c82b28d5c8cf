"""The row below each exercise: a box to tick, a way to the cell in Colab, and a place to write and check an answer."""

import functools
import html
import json
import re
from pathlib import Path

from .browser_python import BrowserPython

EXERCISE = re.compile(r'(<div class="exercise admonition" id="([^"]+)">.*?</section>\n)(</div>)', re.DOTALL)
NUMBER = re.compile(r'<span class="caption-number">(Exercise [\w.]+) </span>')
CHECK = re.compile(r'exercises\.check\("(\w+)", (\w+)\)')
COLAB = re.compile(r'<a href="(https://colab\.[^"#]+\.ipynb)"')
ROW = re.compile(r'<div class="exercise-row".*?</div>\n')
BUTTON = (
    '<button type="button" class="answer-open pst-js-only">Write it here</button>'
    '<span class="answer-size pst-js-only">fetches Python once, {size}, and keeps it</span>'
)
TICK = '<label class="answer-done pst-js-only"><input type="checkbox" /> Done</label>'
SCRIPT = '<script type="module" src="{root}_static/exercises.mjs"></script>\n'


def with_rows(page: str, notebook: Path, python: BrowserPython | None) -> str:
    """Put a row below each exercise, in the place of an earlier one; `notebook` is the chapter's own."""
    if not EXERCISE.search(page):
        return page
    root = re.search(r'data-content_root="([^"]*)"', page)[1]
    script = SCRIPT.format(root=root)
    parts = EXERCISE.split(ROW.sub("", page).replace(script, ""))
    # What follows an exercise is its solution, up to the next exercise.
    rows = [
        whole + row(whole, solution, page, notebook, python, root) + end + solution
        for whole, end, solution in zip(parts[1::4], parts[3::4], parts[4::4], strict=True)
    ]
    return (parts[0] + "".join(rows)).replace("</head>", script + "</head>", 1)


def row(exercise: str, solution: str, page: str, notebook: Path, python: BrowserPython | None, root: str) -> str:
    """The row of one exercise."""
    checks = dict(CHECK.findall(html.unescape(re.sub(r"<[^>]+>", "", exercise))))
    place = button = link = ""
    if python and checks and checks.keys() <= python.arguments.keys():
        called = {name: [function, *python.arguments[name]] for name, function in checks.items()}
        place = (
            f' data-checks="{html.escape(json.dumps(called))}" data-python="{root}{python.folder}"'
            f' data-bytes="{python.size}"'
        )
        button = BUTTON.format(size=f"{python.size / 1e6:.0f} MB")
    colab = COLAB.search(page)
    if colab and (checks or 'class="cell docutils' in solution):
        cell = cell_of(notebook, NUMBER.search(exercise)[1])
        address = f"{colab[1]}#scrollTo={cell}" if cell else colab[1]
        link = f'<a class="answer-colab" href="{address}" target="_blank" rel="noopener">Do it in Colab</a>'
    return f'<div class="exercise-row"{place}>{button}{link}{TICK}</div>\n'


def cell_of(notebook: Path, number: str) -> str | None:
    """The id of the notebook's cell in which an exercise begins; `None` in one that was written before the exercise."""
    begun = re.compile(rf"\*\*{re.escape(number)}( \(|\.|\*)")
    return next((identity for identity, text in cells(notebook) if begun.search(text)), None)


@functools.cache
def cells(notebook: Path) -> list[tuple[str, str]]:
    whole = json.loads(notebook.read_text(encoding="utf-8"))
    return [(cell["id"], "".join(cell["source"])) for cell in whole["cells"]]
