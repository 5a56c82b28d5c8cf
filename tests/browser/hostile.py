"""What nobody should have to type: texts that a field must take without harm."""

ALARM = "window.alarm = true"

HOSTILE = [
    "",
    " ",
    "\n\n\n",
    "\x00",
    "\x01\x02\x1b[31m",
    "a" * 10_000,
    "NaN",
    "null",
    "constructor",
    "__proto__",
    "<start>",
    "<other><mask><stop>",
    f"<script>{ALARM}</script>",
    f"<img src=x onerror='{ALARM}'>",
    f"<iframe src='javascript:{ALARM}'></iframe>",
    f"<a href='javascript:{ALARM}'>click</a>",
    f'"><script>{ALARM}</script>',
    f"'; {ALARM}; '",
    f"${{{ALARM}}}",
    f"{{{{{ALARM}}}}}",
    f"javascript:{ALARM}",
    "<!-- comment",
    "&lt;b&gt;&amp;&#60;",
    "👩‍👩‍👧‍👦🏳️‍🌈👍🏿",
    "\ud7ff\ufffd",
    "\u202eright to left\u202c",
    "\u200b\u200d\ufeff",
    "a\u0301\u0327" * 100,
    "Z" + "\u0335" * 300,
    "ﷺ" * 200,
]


def type_each(field):
    """Type each of the texts into a field of a figure, and wait until it has answered."""
    field.evaluate(
        """async (node, texts) => {
            const root = node.closest('.lf');
            for (const text of texts) {
                node.value = text;
                node.dispatchEvent(new Event('input', { bubbles: true }));
                do await nextFrame(); while (JSON.parse(root.dataset.state).busy);
            }
        }""",
        HOSTILE,
    )
