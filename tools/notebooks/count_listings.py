"""Print how many lines of the package each chapter lists, and how many of them compute.

python tools/notebooks/count_listings.py
"""

import ast
import re
from pathlib import Path

from book import ROOT
from book_meaning.listing import find
from book_meaning.order import chapters


def computing_lines(code: str) -> int:
    """Count the lines in functions that are neither signature, docstring, import, comment nor blank."""
    lines = code.splitlines()
    computing: set[int] = set()
    for function in (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef)):
        computing -= set(range(function.lineno, function.body[0].lineno))
        for part in function.body:
            is_docstring = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
            if not is_docstring and not isinstance(part, ast.Import | ast.ImportFrom):
                computing |= set(range(part.lineno, (part.end_lineno or 0) + 1))
    return sum(bool(lines[number - 1].split("#")[0].strip()) for number in computing)


def names_listed(chapter: Path) -> list[str]:
    """Return the names of the definitions that a chapter lists."""
    directives = re.findall(r"^`{3,}\{listing\} (.+)$", chapter.read_text(encoding="utf-8"), re.MULTILINE)
    return [name for names in directives for name in names.split()]


def main() -> None:
    """Print one line per chapter and one for the book."""
    total = [0, 0]
    for chapter in (ROOT / f"{page}.md" for page in chapters(ROOT)):
        codes = [find(ROOT, name).code for name in names_listed(chapter)]
        shown, computing = sum(len(code.splitlines()) for code in codes), sum(map(computing_lines, codes))
        total = [total[0] + shown, total[1] + computing]
        print(f"{chapter.stem:20} {shown:4} lines, {computing:4} compute")
    print(f"{'the book':20} {total[0]:4} lines, {total[1]:4} compute: {total[1] / max(total[0], 1):.0%}")


if __name__ == "__main__":
    main()
