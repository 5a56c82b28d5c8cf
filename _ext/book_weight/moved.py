"""Pages that have moved: where one lay before, a page leads on, with what stood behind the `#`."""

from pathlib import Path

# Chapters had their numbers in their names.
NUMBERED = (
    "00_primer 01_tokens 02_self_attention 03_multi_head 04_blocks 05_depth 06_positions 07_decoder 08_generation "
    "09_encoder 10_seq2seq 11_vision 12_efficiency 13_relations 14_dynamics 15_pretrained 16_inside 17_finetuning "
    "18_scaling 19_scaling_laws 20_modern 21_serving 22_recipes 23_chatting A_notation B_mistakes C_own_data"
)
MOVED = {f"chapters/{name}.html": f"{name.partition('_')[2]}.html" for name in NUMBERED.split()}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Moved</title><link rel="canonical" href="{there}">
<script>location.replace("{there}" + location.search + location.hash)</script>
<noscript><meta http-equiv="refresh" content="0; url={there}"></noscript></head>
<body><p>This page has moved: <a href="{there}">{there}</a></p></body></html>
"""


def lead_on(site: Path) -> None:
    """Write a page at each address that was, where there is the one that is."""
    for before, there in MOVED.items():
        file = site / before
        if (file.parent / there).is_file():
            file.write_text(PAGE.format(there=there), encoding="utf-8")
