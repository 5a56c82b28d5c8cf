"""The schematics of the chapter on models of others."""

from drawings.sketch import Picture, arrow, box, column, row, words


def names() -> Picture:
    """On the left the file of the published model, with three parts: tables of embeddings, one block, a head. On the
    right our model: tables of embeddings, twelve blocks, a head. An arrow leads from each part of the file to ours, and
    from its one block an arrow leads to the first, to the second, and to the twelfth of our blocks.
    """
    theirs = column(
        words("their file"),
        box("tables", "embeddings", "weights", width=150),
        box("block", "albert_layers.0", "weights", width=150),
        box("guess", "predictions", "weights", width=150),
        gap=34,
    )
    ours = column(
        words("our model"),
        box("our tables", "embedding", "stream", width=170),
        box("first", "stack.blocks.0", "stream", width=170),
        box("second", "stack.blocks.1", "stream", width=170),
        words("⋮"),
        box("last", "stack.blocks.11", "stream", width=170),
        box("our guess", "head", "stream", width=170),
        gap=10,
    )
    picture = row(theirs, ours, gap=120)
    for start, end in (("tables", "our tables"), ("block", "first"), ("block", "second"), ("block", "last")):
        picture = arrow(picture, f"{start}.right", f"{end}.left")
    return arrow(picture, "guess.right", "our guess.left")
