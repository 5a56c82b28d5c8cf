"""The schematics of the chapter on multi-head attention; `cross` and `grouped` stand in later ones."""

from drawings.sketch import SMALL, SOFT, Picture, arrow, box, caption, column, matrix, row, space, words

N, D, D_V = 66.0, 66.0, 22.0
HEADS = ("one", "two", "three")  # three heads, told apart by colour


def mixture() -> Picture:
    """Two headlines, dog bites man and man bites dog, and what the verb receives. One head with weights of one half and
    one half gives the same vector, (1/2, 1), for both. Two heads, one for the subject and one for the object, give
    (2, -1) beside (-1, 3) for the first headline and (-1, 3) beside (2, -1) for the second.
    """
    dog, man = ("(2, −1)", "one"), ("(−1, 3)", "two")

    def line(first: str, words_in: str, second: str, *vectors: tuple[str, str]) -> list[Picture]:
        headline = row(box("", first, vectors[0][1]), words(words_in), box("", second, vectors[1][1]), gap=6)
        pair = row(*(box("", text, kind, width=76) for text, kind in vectors), gap=0)
        return [headline, box("", "(½, 1)", "plain", width=90), pair]

    lines = line("dog", "bites", "man", dog, man), line("man", "bites", "dog", man, dog)
    heads = ("headline", "one head: ½ and ½", "two heads, side by side")
    columns = zip(heads, *lines, strict=True)
    return row(*(column(words(head, SMALL, SOFT), *cells, gap=12) for head, *cells in columns), gap=44)


def two_forms() -> Picture:
    """Two ways to write the same sum. On the left the outputs of three heads, Y1, Y2 and Y3, stand side by side as one
    wide matrix and are multiplied once by W1, W2 and W3, which stand one above the other. On the right each head's
    output is multiplied by its own matrix, and the three products are added.
    """
    heads = row(*(matrix(f"y{h}", f"Y_{{{h}}}", kind, N, D_V) for h, kind in enumerate(HEADS, 1)), gap=0)
    maps = column(*(matrix(f"w{h}", f"W_{{{h}}}^{{(o)}}", kind, D_V, D) for h, kind in enumerate(HEADS, 1)), gap=0)
    together = caption(row(heads, words("·", 22), maps, gap=8), "side by side: one product")
    terms: list[Picture] = []
    for h, kind in enumerate(HEADS, 1):
        head, own = matrix("z", f"Y_{{{h}}}", kind, N, D_V), matrix("v", f"W_{{{h}}}^{{(o)}}", kind, D_V, D)
        terms += [words("+", 22)] * (h > 1) + [row(head, words("·", 22), own, gap=6)]
    return row(together, words("=", 26), caption(row(*terms, gap=10), "one product for each head, added"), gap=34)


def grouped() -> Picture:
    """Three ways for eight query heads to share keys and values. Multi-head: each query head has a key head and a value
    head of its own. Grouped: four query heads share one key head and one value head. Multi-query: all eight share one.
    """
    kinds = ((8, "multi-head"), (2, "grouped"), (1, "multi-query"))
    return row(*(_sharing(*kind) for kind in kinds), gap=46)


def _sharing(num_kv_heads: int, name: str) -> Picture:
    side, tall = 14.0, 30.0
    queries = row(*(box(f"q{h}", "", "queries", width=side, height=tall) for h in range(8)), gap=6)
    edge = (queries.width / num_kv_heads - side) / 2

    def shared(letter: str, kind: str) -> Picture:
        heads = (box(f"{letter}{g}", "", kind, width=side, height=tall) for g in range(num_kv_heads))
        return row(*(row(space(edge), head, space(edge), gap=0) for head in heads), gap=0)

    picture = column(shared("v", "values"), shared("k", "keys"), queries, gap=30)
    for h in range(8):
        picture = arrow(picture, f"q{h}.top", f"k{h * num_kv_heads // 8}.bottom", head=False)
    for g in range(num_kv_heads):
        picture = arrow(picture, f"k{g}.top", f"v{g}.bottom", head=False)
    return column(picture, words(name), gap=8)


def cross() -> Picture:
    """Cross-attention. The queries Q come from one sequence, X, of two tokens; keys K and values V from another, Z, of
    four. The weights A are 2 by 4: one row per token that asks, one column per token that is read. The outputs Y_h are
    as many as the tokens of X.
    """
    two, four = 44.0, 88.0  # points for two tokens, and for four
    asking = row(
        matrix("x", "X", "stream", two, 90, "2 × D"), matrix("q", "Q", "queries", two, 54, "2 × d_{k}"), gap=60
    )
    keys, values = matrix("k", "K", "keys", four, 54, "4 × d_{k}"), matrix("v", "V", "values", four, 72, "4 × d_{v}")
    read = row(matrix("z", "Z", "stream", four, 90, "4 × D"), column(keys, values, gap=20, align=0), gap=60)
    weights = matrix("a", "A", "plain", two, four, "2 × 4")
    outputs = row(weights, matrix("y", "Y_{h}", "stream", two, 72, "2 × d_{v}"), gap=60)
    picture = row(column(asking, read, gap=30, align=0), outputs, gap=130, align=0)
    for start, end in (("x", "q"), ("z", "k"), ("z", "v")):
        picture = arrow(picture, f"{start}.right", f"{end}.left")
    picture = arrow(picture, "q.right", "a.left", label="softmax (Q K^{T} / √d_{k})")
    picture = arrow(picture, "k.right", "a.bottom.0.1", bend="across")
    picture = arrow(picture, "a.right", "y.left", label="A V")
    return arrow(picture, "v.right", "y.bottom.0.1", bend="across")
