"""What nobody should have to type: fifty texts that a field must take without harm."""

ALARM = "window.alarm = true"

HOSTILE = [
    "",
    " ",
    "   ",
    "\t",
    "\n\n\n",
    "\x00",
    "\x01\x02\x1b[31m",
    "a" * 10_000,
    "ab " * 3_000,
    "0",
    "-1",
    "NaN",
    "Infinity",
    "undefined",
    "null",
    "[object Object]",
    "constructor",
    "__proto__",
    "hasOwnProperty",
    "toString",
    "<start>",
    "<other><mask><stop>",
    f"<script>{ALARM}</script>",
    f"<img src=x onerror='{ALARM}'>",
    f"<svg onload='{ALARM}'>",
    f"<iframe src='javascript:{ALARM}'></iframe>",
    f"<a href='javascript:{ALARM}'>click</a>",
    f'"><script>{ALARM}</script>',
    f"'; {ALARM}; '",
    f"${{{ALARM}}}",
    f"{{{{{ALARM}}}}}",
    f"<details open ontoggle='{ALARM}'>",
    f"<style onload='{ALARM}'></style>",
    f"javascript:{ALARM}",
    "<!-- comment",
    "]]>",
    "&lt;b&gt;&amp;&#60;",
    "%3Cscript%3E",
    "../../../etc/passwd",
    "'; DROP TABLE tokens; --",
    "🙂",
    "👩‍👩‍👧‍👦🏳️‍🌈👍🏿",
    "\ud7ff\ufffd",
    "مرحبا بالعالم",
    "\u202eright to left\u202c",
    "\u200b\u200d\ufeff",
    "a\u0301\u0327" * 100,
    "Z" + "\u0335" * 300,
    "日本語のテキスト",
    "ﷺ" * 200,
]


def type_each(field):
    """Type each of the texts into a field, with a moment for the figure to answer."""
    field.evaluate(
        """async (node, texts) => {
            for (const text of texts) {
                node.value = text;
                node.dispatchEvent(new Event('input', { bubbles: true }));
                await new Promise((done) => setTimeout(done, 20));
            }
        }""",
        HOSTILE,
    )
