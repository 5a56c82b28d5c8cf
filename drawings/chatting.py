"""The schematics of the chapter on chatting."""

from itertools import pairwise

from drawings import number
from drawings.sketch import SMALL, SOFT, Picture, arrow, box, column, place, row, space, words

WIDE, BESIDE, LEFT, GAP = 150.0, 50.0, 122.0, 6.0


def machine() -> Picture:
    """SmolLM2 from the bottom to the top, with the name that each part has in the file on its left, and the chapter
    that builds it on its right. The conversation is cut into tokens, and each becomes a row of the table, token_embd
    (chapter on tokens). Then 30 blocks, each with a norm, attn_norm (blocks); queries, keys and values, attn_q, attn_k
    and attn_v (self-attention), turned by their positions (positions), for nine heads on three, attn_output (multi-head
    attention); a norm, ffn_norm, and a gated network, ffn_gate, ffn_up and ffn_down (blocks). Then a norm, output_norm
    (depth), and the table once more, transposed (decoder). From the logits the next token is drawn (generation).
    """
    block = [
        _part("network", "gated network", "weights", "ffn_gate, up, down", "blocks"),
        _part("norm 2", "norm", "norm", "ffn_norm", "blocks"),
        _part("heads", "9 heads on 3", "weights", "attn_output", "multi_head"),
        _part("turned", "turned by position", "plain", "", "positions"),
        _part("rows", "queries, keys, values", "weights", "attn_q, k, v", "self_attention"),
        _part("norm 1", "norm", "norm", "attn_norm", "blocks"),
    ]
    picture = column(
        _line("in the file", words("the next token", SMALL).named("end"), "chapter"),
        _part("draw", "draw one", "plain", "", "generation"),
        _part("logits", "E^{T}", "weights", "token_embd", "decoder"),
        _part("norm", "norm", "norm", "output_norm", "depth"),
        _framed(column(*block, gap=14), "30 blocks"),
        _part("embed", "row of E", "weights", "token_embd", "tokens"),
        _part("cut", "cut into tokens", "plain", "", "tokens"),
        _line("", words("the conversation", SMALL).named("start"), ""),
        gap=14,
    )
    in_block = ["norm 1", "rows", "turned", "heads", "norm 2", "network"]
    for before, after in pairwise(["start", "cut", "embed", *in_block, "norm", "logits", "draw", "end"]):
        picture = arrow(picture, f"{before}.top", f"{after}.bottom", width=2.5)
    return picture


def _line(left: str, middle: Picture, right: str) -> Picture:
    """A part between what stands on its left and on its right, in columns that are equally wide in every line."""
    sides = words(left, SMALL, SOFT), words(right, SMALL, SOFT)
    beside = [
        place(size, text.height, [(text, shift * (size - text.width), 0)])
        for size, text, shift in zip((LEFT, BESIDE), sides, (1, 0), strict=True)
    ]
    middle = row(space((WIDE - middle.width) / 2), middle, space((WIDE - middle.width) / 2), gap=0)
    return row(beside[0], middle, beside[1], gap=GAP)


def _part(name: str, label: str, kind: str, tensors: str, chapter: str) -> Picture:
    return _line(tensors, box(name, label, kind, size=SMALL, width=WIDE), number(chapter))


def _framed(inside: Picture, label: str) -> Picture:
    """Lines in a frame, with a label in its left upper corner."""
    text = words(label, SMALL)
    frame = box("", width=inside.width + 10, height=inside.height + 44)
    return place(frame.width, frame.height, [(frame, 0, 0), (text, 5, 4), (inside, 5, 22)])
