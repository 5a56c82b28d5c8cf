"""Find MyST that a notebook would show as it stands."""

import re

RAW = re.compile(r"^[\s>]*(?:`{3,}|~{3,}|:{3,})\s*\{[\w:-]+\}|(?<!`)\{[A-Za-z][\w:+.-]*\}`[^`]", re.MULTILINE)


def raw_markup(text: str) -> str:
    """The first directive or role that is left in Markdown outside listings; empty if there is none."""
    prose = re.sub(r"^(\s*>?\s*)(`{3,})(?!\s*\{).*?^\s*>?\s*\2\s*$", "", text, flags=re.DOTALL | re.MULTILINE)
    found = RAW.search(prose)
    return found[0] if found else ""
