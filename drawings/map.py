"""The map of the machine that stands at the top of each chapter: every part leads to its chapter.

`_ext/book_meaning/chapter_map.py` turns what is marked with `data-chapter` into links. One map is for a wide page, one
for a phone.
"""

from xml.etree import ElementTree

from drawings import number
from drawings.sketch import SMALL, Picture, arrow, box, column, element, place, row, words

HEIGHT = 26.0


def _linked(picture: Picture, chapter: str) -> Picture:
    """The picture as one thing that leads to a chapter."""

    def mark(x: float, y: float) -> ElementTree.Element:
        link = element("a", data_chapter=chapter)
        link.extend(part(x, y) for part in picture.marks)
        return link

    return Picture(picture.width, picture.height, (mark,)).named(chapter)


def _part(chapter: str, label: str, width: float = 0.0) -> Picture:
    text = f"{number(chapter)} {label}".strip()
    width = width or words(text, SMALL).width + 14
    return _linked(box("", text, size=SMALL, width=width, height=HEIGHT), chapter)


def _around(chapter: str, label: str, inside: Picture) -> Picture:
    """A part that another one lies in, below its label."""
    text = words(f"{number(chapter)} {label}", SMALL)
    width, height = max(inside.width, text.width) + 16, inside.height + text.height + 8
    frame = place(width, height, [(box("", width=width, height=height), 0, 0), (text, (width - text.width) / 2, 1)])
    inner = (inside, (width - inside.width) / 2, text.height + 2)
    return place(width, height, [(_linked(frame, chapter), 0, 0), inner])


def _block() -> Picture:
    heads = _around("multi_head", "heads", _part("self_attention", "attention"))
    return _around("depth", "depth", _around("blocks", "block", heads))


def _joined(picture: Picture, *arrows: str) -> Picture:
    for each in arrows:
        start, end = each.split(" > ")
        picture = arrow(picture, start, end)
    return picture


def _beside() -> list[Picture]:
    """What goes beyond the machine, three or four parts a row."""
    real = ("subwords", "pieces"), ("real_text", "real text"), ("deep_stacks", "deep stacks")
    uses = ("efficiency", "costs"), ("relations", "relations"), ("dynamics", "motion")
    trained = ("pretrained", "opened"), ("inside", "inside"), ("finetuning", "tuned")
    sized = ("scaling", "devices"), ("scaling_laws", "how large")
    today = ("modern", "today"), ("serving", "serving"), ("recipes", "recipes"), ("chatting", "answers")
    return [row(*(_part(*each) for each in parts), gap=14) for parts in (real, uses, trained, sized, today)]


def wide() -> Picture:
    """The whole machine from left to right: tokens, positions, and a stack of blocks that hold heads that hold
    attention. Of blocks are made an encoder, a decoder and a vision transformer; encoder and decoder together
    translate, a decoder alone writes. Below it, real text and its pieces, and what keeps deep stacks trainable; what
    all of it costs, what it is related to, and motion as one more use; then models that are trained already: how they
    are opened, looked into, and tuned; several devices, and how large a model should be; the block of today, how it
    serves many readers, and how it is trained; and a published model that answers.
    """
    models = column(
        _part("encoder", "encoder", 86), _part("decoder", "decoder", 86), _part("vision", "vision", 86), gap=8
    )
    uses = column(_part("seq2seq", "translation", 106), _part("generation", "writing", 106), gap=8)
    front = [_part("primer", "primer"), _part("tokens", "tokens"), _part("positions", "positions")]
    uses = place(uses.width, models.height, [(uses, 0, 0)])
    beside = _beside()
    rows = row(*beside[:3], gap=14), row(*beside[3:], gap=14)
    return _joined(
        column(row(*front, _block(), models, uses, gap=14), *rows, gap=12),
        "tokens.right > positions.left",
        "positions.right > depth.left",
        "depth.right > encoder.left",
        "depth.right > decoder.left",
        "depth.right > vision.left",
        "encoder.right > seq2seq.left",
        "decoder.right.0.3 > seq2seq.left.0.8",
        "decoder.right.0.6 > generation.left",
    )


def narrow() -> Picture:
    """The whole machine from top to bottom: tokens, positions, and a stack of blocks that hold heads that hold
    attention; below it encoder, decoder and vision transformer, then translating and writing, then real text, its
    pieces and deep stacks, then costs, relations and motion, then models that are trained already: how they are opened,
    looked into, and tuned; several devices, and how large a model should be; the block of today, how it serves many
    readers, and how it is trained; and a published model that answers.
    """
    front = row(_part("primer", "primer"), _part("tokens", "tokens"), _part("positions", "positions"), gap=18)
    models = row(_part("encoder", "encoder"), _part("decoder", "decoder"), _part("vision", "vision"), gap=14)
    uses = row(_part("seq2seq", "translation"), _part("generation", "writing"), gap=14)
    return _joined(
        column(front, _block(), models, uses, *_beside(), gap=20),
        "tokens.right > positions.left",
        "positions.bottom > depth.top",
        "depth.bottom > encoder.top",
        "depth.bottom > decoder.top",
        "depth.bottom > vision.top",
        "encoder.bottom > seq2seq.top",
        "decoder.bottom > seq2seq.top",
        "decoder.bottom > generation.top",
    )
