"""The schematics of the chapter on fine-tuning."""

from drawings.sketch import SMALL, SOFT, Picture, arrow, box, column, matrix, plus, row, words


def adapter() -> Picture:
    """A layer with an adapter. The row x goes two ways. On the first it is multiplied by the frozen square matrix W. On
    the second it goes through two thin matrices, U in and U out, which are learned, and is multiplied by the scale.
    The two results are added to y.
    """
    frozen = matrix("frozen", "W", "plain", 96, 96, "D × D, frozen")
    thin = row(
        matrix("first", "U_{in}", "marked", 96, 34, "D × d_{r}"),
        matrix("second", "U_{out}", "marked", 34, 96, "d_{r} × D"),
        box("scale", "· α_{r}", "plain"),
        gap=30,
    )
    ways = column(frozen, thin, gap=24)
    picture = row(box("x", "x", "stream"), ways, plus("sum"), box("y", "y", "stream"), gap=44)
    for each in ("x.right > frozen.left", "x.right > first.left", "first.right > second.left"):
        picture = arrow(picture, *each.split(" > "))
    for each in ("second.right > scale.left", "frozen.right > sum.left", "scale.right > sum.left"):
        picture = arrow(picture, *each.split(" > "))
    return arrow(picture, "sum.right", "y.left")


def answer() -> Picture:
    """A dialogue as one text: a story, the token question, where is the lamp, the token answer, kitchen, the token end.
    Only kitchen and end are marked: they alone count in the loss. The model says kitchen at the token answer, and end
    at kitchen.
    """
    parts = (
        ("story", "story …", "plain"),
        ("question", "<question>", "norm"),
        ("asked", "where is the lamp", "plain"),
        ("answer", "<answer>", "norm"),
        ("kitchen", "kitchen", "marked"),
        ("end", "<end>", "marked"),
    )
    text = row(*(box(name, label, kind, size=SMALL) for name, label, kind in parts), gap=6)
    return column(text, words("the loss asks for the two marked tokens alone", SMALL, SOFT), gap=10, align=1)


def preference() -> Picture:
    """One beginning with two continuations, each read by two models. The model that is tuned and the frozen reference
    give each continuation a probability. The logarithm of their ratio is delta plus for the one that was preferred,
    and delta minus for the other; the loss looks at the difference of the two.
    """
    texts = column(box("plus", "preferred", "one"), box("minus", "not preferred", "two"), gap=46)
    models = column(box("tuned", "tuned model", "weights"), box("reference", "reference, frozen", "plain"), gap=46)
    ratios = column(box("up", "δ^{+}", "one"), box("down", "δ^{-}", "two"), gap=46)
    picture = row(box("prompt", "beginning", "stream"), texts, models, ratios, box("loss", "loss", "marked"), gap=36)
    ways = "prompt.right > plus.left, prompt.right > minus.left, plus.right > tuned.left, plus.right > reference.left, "
    ways += "minus.right > tuned.left, minus.right > reference.left, tuned.right > up.left, tuned.right > down.left, "
    ways += "reference.right > up.left, reference.right > down.left, up.right > loss.left, down.right > loss.left"
    for each in ways.split(", "):
        picture = arrow(picture, *each.split(" > "))
    return picture
