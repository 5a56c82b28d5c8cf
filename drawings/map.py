"""The map of the machine that stands at the top of each chapter: every part leads to its chapter.

`_ext/book_meaning/chapter_map.py` turns what is marked with `data-chapter` into links. One map is for a wide page, one
for a phone.
"""

from xml.etree import ElementTree

from drawings.sketch import SMALL, Picture, arrow, box, column, element, place, row, words

HEIGHT = 26.0


def _linked(picture: Picture, chapter: str) -> Picture:
    """The picture as one thing that leads to a chapter."""

    def mark(x: float, y: float) -> ElementTree.Element:
        link = element("a", data_chapter=chapter)
        link.extend(part(x, y) for part in picture.marks)
        return link

    return Picture(picture.width, picture.height, (mark,)).named(chapter.split("_", 1)[1])


def _part(chapter: str, label: str, width: float = 0.0) -> Picture:
    text = f"{int(chapter[:2]) or ''} {label}".strip()
    width = width or words(text, SMALL).width + 14
    return _linked(box("", text, size=SMALL, width=width, height=HEIGHT), chapter)


def _around(chapter: str, label: str, inside: Picture) -> Picture:
    """A part that another one lies in, below its label."""
    text = words(f"{int(chapter[:2])} {label}", SMALL)
    width, height = max(inside.width, text.width) + 16, inside.height + text.height + 8
    frame = place(width, height, [(box("", width=width, height=height), 0, 0), (text, (width - text.width) / 2, 1)])
    inner = (inside, (width - inside.width) / 2, text.height + 2)
    return place(width, height, [(_linked(frame, chapter), 0, 0), inner])


def _block() -> Picture:
    heads = _around("03_multi_head", "heads", _part("02_self_attention", "attention"))
    return _around("05_depth", "depth", _around("04_blocks", "block", heads))


def _joined(picture: Picture, *arrows: str) -> Picture:
    for each in arrows:
        start, end = each.split(" > ")
        picture = arrow(picture, start, end)
    return picture


def _beside() -> list[Picture]:
    """What goes beyond the machine, three or four parts a row."""
    uses = ("12_efficiency", "costs"), ("13_relations", "relations"), ("14_dynamics", "motion")
    trained = ("15_pretrained", "opened"), ("16_inside", "inside"), ("17_finetuning", "tuned")
    sized = ("18_scaling", "devices"), ("19_scaling_laws", "how large")
    today = ("20_modern", "today"), ("21_serving", "serving"), ("22_recipes", "recipes"), ("23_chatting", "answers")
    return [row(*(_part(*each) for each in parts), gap=14) for parts in (uses, trained, sized, today)]


def wide() -> Picture:
    """The whole machine from left to right: tokens, positions, and a stack of blocks that hold heads that hold
    attention. Of blocks are made an encoder, a decoder and a vision transformer; encoder and decoder together
    translate, a decoder alone writes. Below it, what all of it costs, what it is related to, and motion as one more
    use; then models that are trained already: how they are opened, looked into, and tuned; several devices, and how
    large a model should be; the block of today, how it serves many readers, and how it is trained; and a published
    model that answers.
    """
    models = column(
        _part("09_encoder", "encoder", 86), _part("07_decoder", "decoder", 86), _part("11_vision", "vision", 86), gap=8
    )
    uses = column(_part("10_seq2seq", "translation", 106), _part("08_generation", "writing", 106), gap=8)
    front = [_part("00_primer", "primer"), _part("01_tokens", "tokens"), _part("06_positions", "positions")]
    uses = place(uses.width, models.height, [(uses, 0, 0)])
    return _joined(
        column(row(*front, _block(), models, uses, gap=14), row(*_beside(), gap=14), gap=12),
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
    attention; below it encoder, decoder and vision transformer, then translating and writing, then costs, relations and
    motion, then models that are trained already: how they are opened, looked into, and tuned; several devices, and how
    large a model should be; the block of today, how it serves many readers, and how it is trained; and a published
    model that answers.
    """
    front = row(_part("00_primer", "primer"), _part("01_tokens", "tokens"), _part("06_positions", "positions"), gap=18)
    models = row(_part("09_encoder", "encoder"), _part("07_decoder", "decoder"), _part("11_vision", "vision"), gap=14)
    uses = row(_part("10_seq2seq", "translation"), _part("08_generation", "writing"), gap=14)
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
