"""How much a page asks a reader to read: the words that stand open before its exercises."""

import re

FOLDED = r"^:::\{dropdown\}.*?^:::$"
NO_PROSE = r"^(`{3,})\{(?:code-cell|math|listing|facts)\}.*?^\1$"
LINES = r"^(?::\w+:.*|`{3,}.*|:{3,}.*|\(.*\)=)$"


def words_before_exercises(page: str) -> int:
    """Captions and margins count; code, tables of facts and what is folded do not; a formula in a line is a word."""
    text = re.split(r"^## Exercises", page.partition("\n---\n")[2], flags=re.MULTILINE)[0]
    for pattern in (FOLDED, NO_PROSE, r"^```python\n.*?^```$"):
        text = re.sub(pattern, "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
    text = re.sub(r"\{claim\}`[^`]+`", "", text)
    text = re.sub(r"\$[^$]+\$|\{[\w:-]+\}`[^`]+`", "x", text)
    text = re.sub(LINES, "", text, flags=re.MULTILINE)
    return sum(bool(re.search(r"\w", word)) for word in text.split())
