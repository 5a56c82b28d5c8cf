"""Mark the notebooks of a class: `python -m plainformer.exercises *.ipynb`, or with `--to marks.csv`.

Each notebook is run in a process of its own. IT RUNS WHAT STUDENTS WROTE, WITH YOUR RIGHTS: use a container, or a
machine without network and without anything of yours.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

from plainformer.exercises import marking


def main() -> int:
    """Read the command line, mark, and write the table."""
    parser = argparse.ArgumentParser(
        "python -m plainformer.exercises", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notebooks", nargs="+", type=Path, help="the students' files, .ipynb")
    parser.add_argument("--to", type=Path, help="a .csv or .md file for the table, instead of the screen")
    parser.add_argument("--seconds", type=int, default=60, help="how long a cell may take (60)")
    given = parser.parse_args()
    if given.to and given.to.suffix not in {".csv", ".md"}:
        parser.error(f"--to takes a name that ends in .csv or .md, not {given.to.name!r}")
    if not importlib.util.find_spec("nbclient"):
        parser.error("running notebooks needs nbclient: python -m pip install nbclient ipykernel")
    marks = {}
    for notebook in given.notebooks:
        marks[str(notebook)] = marking.mark(notebook, given.seconds)
        print(f"{notebook}: {list(marks[str(notebook)].values()).count(marking.PASSED)} passed", file=sys.stderr)
    rows = marking.as_table(marks)
    text = marking.in_csv(rows) if given.to and given.to.suffix == ".csv" else marking.in_markdown(rows)
    if given.to:
        given.to.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
