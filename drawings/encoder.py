"""The schematics of the chapter on the encoder."""

from drawings.sketch import SMALL, SOFT, Picture, arrow, box, column, row, words


def both_sides() -> Picture:
    """The middle letter of a three-letter word, asked twice. After p alone it may be a, e, i or o, four candidates and
    2 bits of surprise. Between p and n it may be a or i, two candidates and 1 bit.
    """

    def asked(after: str, candidates: str, bits: str) -> Picture:
        side = 38.0
        letters = (("p", "stream"), ("?", "marked"), (after, "stream" if after else "plain"))
        word = row(*(box(f"x{n}", letter, kind, width=side) for n, (letter, kind) in enumerate(letters)), gap=8)
        found = row(*(box("", letter, "marked", width=side) for letter in candidates), gap=8)
        picture = row(word, found.named("found"), words(bits), gap=54)
        return arrow(picture, "x2.right", "found.left")

    return column(asked("", "aeio", "2 bits"), asked("n", "ai", "1 bit"), gap=18, align=0)


def hide_and_guess() -> Picture:
    """Masked pre-training. Of the letters of pan the second is replaced by a mask. All three go into the encoder, which
    returns a vector for each; from the vector at the mask the model guesses the letter a.
    """
    return _reading(["p", "?", "n"], {1: "a"}, "which letter?")


def head_swap() -> Picture:
    """The same encoder with two heads. While it learns to guess, a head turns the vector at the mask into words.
    Afterwards this head is taken off, the mean of all vectors goes into a new one, and it names the class.
    """
    return row(
        _with_head("learning to guess", "words", "at the mask"), _with_head("afterwards", "classes", "mean"), gap=70
    )


def _with_head(when: str, head: str, what: str) -> Picture:
    parts = box("head", head, "marked", width=130.0), box("encoder", "encoder", "weights", width=130.0)
    picture = column(*parts, gap=44)
    picture = arrow(picture, "encoder.top", "head.bottom")
    return column(row(picture, words(what, SMALL, SOFT), gap=8), words(when), gap=8)


def _reading(letters: list[str], guesses: dict[int, str], question: str) -> Picture:
    side = 38.0
    read = row(*(box(f"x{n}", letter, "stream", width=side) for n, letter in enumerate(letters)), gap=16)
    encoder = box("encoder", "encoder", "weights", width=read.width)
    kinds = ["marked" if n in guesses else "plain" for n in range(len(letters))]
    vectors = row(
        *(box(f"y{n}", guesses.get(n, ""), kind, width=side, height=34.0) for n, kind in enumerate(kinds)), gap=16
    )
    picture = column(words(question, SMALL, SOFT), vectors, encoder, read, gap=26)
    for n in range(len(letters)):
        share = (n * (side + 16) + side / 2) / read.width
        picture = arrow(picture, f"x{n}.top", f"encoder.bottom.{share:.3f}")
        picture = arrow(picture, f"encoder.top.{share:.3f}", f"y{n}.bottom")
    return picture
