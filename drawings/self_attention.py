"""The schematics of the chapter on self-attention."""

from itertools import pairwise

from drawings.sketch import Picture, arrow, box, caption, column, grid, matrix, row, space, words

TOKEN, FEATURE = 14.0, 7.0  # points per token, and per feature
N, D, D_K, D_V = 6 * TOKEN, 10 * FEATURE, 6 * FEATURE, 8 * FEATURE


def attention() -> Picture:
    """Self-attention from left to right. The tokens X, N by D, are multiplied by three learned matrices, which gives
    queries Q and keys K, N by d_k, and values V, N by d_v. Queries and keys give the scores S, N by N; a softmax along
    each row gives the weights A, of the same shape; weights times values give the outputs Y, N by d_v.
    """
    tokens = matrix("x", "X", "stream", N, D, "N × D")
    projected = column(
        matrix("q", "Q", "queries", N, D_K, "N × d_{k}"),
        matrix("k", "K", "keys", N, D_K, "N × d_{k}"),
        matrix("v", "V", "values", N, D_V, "N × d_{v}"),
        gap=16,
    )
    scores, weights = matrix("s", "S", "plain", N, N, "N × N"), matrix("a", "A", "plain", N, N, "N × N")
    outputs = matrix("y", "Y", "stream", N, D_V, "N × d_{v}")
    picture = row(row(tokens, projected, gap=90), row(scores, weights, outputs, gap=62), gap=88)
    for name in "qkv":
        picture = arrow(picture, "x.right", f"{name}.left", label=f"W^{{({name})}}")
    picture = arrow(picture, "q.right", "s.left.0.2")
    picture = arrow(picture, "k.right", "s.left", label="Q K^{T} / √d_{k}")
    picture = arrow(picture, "s.right", "a.left", label="softmax")
    picture = arrow(picture, "a.right", "y.left", label="A V")
    return arrow(picture, "v.right", "y.bottom.0.03", bend="across")


def bottleneck() -> Picture:
    """Four words of a sentence, I am a student, are read one after another, each changing one vector. From this one
    vector alone the four words of the translation, ich bin ein Student, are written one after another.
    """
    words_in, words_out = ["I", "am", "a", "student"], ["ich", "bin", "ein", "Student"]
    boxes = [box(f"r{n}", word, "stream") for n, word in enumerate(words_in)]
    middle = box("v", "one vector", "marked", height=60)
    boxes += [middle, *(box(f"w{n}", word) for n, word in enumerate(words_out))]
    picture = row(*boxes, gap=20)
    names = ["r0", "r1", "r2", "r3", "v", "w0", "w1", "w2", "w3"]
    for before, after in pairwise(names):
        picture = arrow(picture, f"{before}.right", f"{after}.left")
    return picture


def neighbours() -> Picture:
    """Two phrases. In the first, the word bark takes three quarters of its new vector from dog and one
    quarter from itself; in the second, three quarters from oak. The same word ends as two different vectors.
    """
    return row(_phrase("dog", "(2½, −¼)"), _phrase("oak", "(¼, 2)"), gap=80)


def _phrase(neighbour: str, vector: str) -> Picture:
    before = row(box("left", neighbour), box("right", "bark", "stream"), gap=70)
    after = row(box("new", "bark", "marked"), words(vector), gap=8)
    after = row(space(before.parts["right"].x), after, gap=0)
    picture = column(before, after, gap=64, align=0)
    picture = arrow(picture, "left.bottom", "new.top.0.3", width=4, label="¾")
    return arrow(picture, "right.bottom", "new.top.0.6", width=1.5, label="¼")


def masks() -> Picture:
    """Three grids in which a filled cell says that the token of its row may look at the token of its column. Full:
    every token looks at all. Triangle: each looks at itself and at those before it. Rectangle: five tokens of one
    sequence look at seven of another.
    """

    def one(rows: int, columns: int, seen, below: str) -> Picture:
        cells = [["stream" if seen(n, m) else "plain" for m in range(columns)] for n in range(rows)]
        return caption(grid("grid", cells), below)

    return row(
        one(5, 5, lambda n, m: True, "every token sees all"),
        one(5, 5, lambda n, m: m <= n, "none sees what follows"),
        one(5, 7, lambda n, m: True, "five tokens see seven others"),
        gap=46,
    )
