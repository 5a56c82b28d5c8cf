"""The schematics of the chapter on encoder–decoders."""

from itertools import pairwise

from drawings.sketch import SMALL, SOFT, Picture, arrow, box, column, row, words

WIDE = 170.0


def alignment() -> Picture:
    """The source, 5 de mayo de 1987, above the target, 1987 - 05 - 05, with a line from each part of the target to the
    part of the source that it comes from: the year from the end, the month from mayo, the day from the beginning.
    """
    source = row(*(box(f"s{n}", part, "stream") for n, part in enumerate(["5", "de", "mayo", "de", "1987"])), gap=12)
    target = row(*(box(f"t{n}", part, "marked") for n, part in enumerate(["1987", "-", "05", "-", "05"])), gap=12)
    picture = column(source, target, gap=60)
    for below, above in ((0, 4), (2, 2), (4, 0)):
        picture = arrow(picture, f"t{below}.top", f"s{above}.bottom", head=False)
    return picture


def encoder_decoder() -> Picture:
    """On the left the encoder reads the source: each of its blocks has self-attention without a mask and a network. On
    the right the decoder reads the target so far: each of its blocks has causal self-attention, then cross-attention
    to what the encoder returned, and a network. Above the decoder stand the logits of the next token.
    """
    encoder = column(
        box("en", "network", "weights", width=WIDE),
        box("ea", "self-attention, full", "weights", width=WIDE),
        words("source").named("source"),
        gap=26,
    )
    decoder = column(
        words("logits of the next token").named("logits"),
        box("dn", "network", "weights", width=WIDE),
        box("dc", "cross-attention", "marked", width=WIDE),
        box("da", "self-attention, causal", "weights", width=WIDE),
        words("target so far").named("target"),
        gap=26,
    )
    picture = row(encoder, decoder, gap=90, align=1)
    for chain in (("source", "ea", "en"), ("target", "da", "dc", "dn", "logits")):
        for below, above in pairwise(chain):
            picture = arrow(picture, f"{below}.top", f"{above}.bottom", width=2.5)
    picture = arrow(picture, "en.right", "dc.left", width=2.5)
    return column(picture, words("each block several times; norms and sums are left out", SMALL, SOFT), gap=10)
