"""The pictures that several chapters draw. matplotlib is imported only when one is drawn."""

from collections.abc import Sequence

import numpy as np

from plainformer.checks import check_axes


def attention_map(
    weights,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    ax=None,
    title: str = "",
    numbers: bool | None = None,
):
    r"""Draw attention weights as a heat map: one row per query, one column per key.

    **Arguments**

    - `weights`: `(q_seq, kv_seq)`, each between 0 and 1.
    - `rows`, `columns`: a label for each query and for each key; `columns` defaults to `rows` if they are as many.
    - `ax`: the matplotlib axes to draw into; `None` makes a figure.
    - `numbers`: whether each cell shows its weight; `None` for yes if there are at most 8 columns.

    **Returns** the matplotlib axes.
    """
    import matplotlib.pyplot as plt

    weights = np.asarray(weights)
    check_axes("weights", weights, "Of several heads, draw one: weights[0].", q_seq=None, kv_seq=None)
    num_rows, num_columns = weights.shape
    columns = rows if columns is None and num_rows == num_columns else columns
    for name, labels, expected in (("rows", rows, num_rows), ("columns", columns, num_columns)):
        if labels is not None and len(labels) != expected:
            raise ValueError(f"{name} holds {len(labels)} labels; expected {expected}, as weights is {weights.shape}.")
    if ax is None:
        _, ax = plt.subplots(figsize=(1.2 + 0.55 * num_columns, 1.0 + 0.45 * num_rows), layout="constrained")
    ax.imshow(weights, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    # A dollar sign in a token is a dollar sign, not the beginning of a formula.
    ax.set_xticks(range(num_columns), range(num_columns) if columns is None else columns, parse_math=False)
    ax.set_yticks(range(num_rows), range(num_rows) if rows is None else rows, parse_math=False)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.set_xlabel("key")
    ax.set_ylabel("query")
    ax.xaxis.set_label_position("top")
    if title:
        ax.set_title(title)
    if numbers or (numbers is None and num_columns <= 8):
        for (row, column), weight in np.ndenumerate(weights):
            colour = "white" if weight > 0.55 else "black"
            ax.text(column, row, f"{weight:.2f}", ha="center", va="center", color=colour, fontsize=9)
    return ax
