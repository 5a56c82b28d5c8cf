"""Cutting rows into one piece per attention head, and laying the pieces side by side again (chapter 03)."""

from jaxtyping import Array, Float

from plainformer.checks import check_axes, check_positive


def split_heads(x: Float[Array, "seq width"], num_heads: int) -> Float[Array, "heads seq d_head"]:
    r"""Cut each row into `num_heads` equal pieces and stack the pieces of each head into a matrix.

    Implements `eq-multi-head-split`; the columns of head h are those from h d_head to (h + 1) d_head, counted from 0.

    **Arguments**

    - `x`: one row per token, the heads side by side, `(seq, num_heads * d_head)`.
    - `num_heads`: how many pieces.

    **Returns** one matrix per head, `(num_heads, seq, d_head)`, so that the matrix products of a head are innermost.
    **Raises** `ValueError` if the width is not a multiple of `num_heads`.
    """
    check_axes("x", x, seq=None, width=None)
    check_positive(num_heads=num_heads)
    seq, width = x.shape
    if width % num_heads:
        raise ValueError(f"x is {width} wide, which {num_heads} heads cannot share equally; expected a multiple.")
    # Reshape, then transpose: reshaping straight to (heads, seq, d_head) would cut across tokens.
    return x.reshape(seq, num_heads, width // num_heads).transpose(1, 0, 2)


def merge_heads(heads: Float[Array, "heads seq d_head"]) -> Float[Array, "seq width"]:
    r"""Lay the heads' rows side by side again: the inverse of `split_heads`.

    Implements `eq-multi-head-merge`.

    **Arguments**

    - `heads`: one matrix per head, `(num_heads, seq, d_head)`.

    **Returns** one row per token, `(seq, num_heads * d_head)`.

    **Raises** `ValueError` if `heads` does not have three axes.
    """
    check_axes("heads", heads, heads=None, seq=None, d_head=None)
    num_heads, seq, d_head = heads.shape
    return heads.transpose(1, 0, 2).reshape(seq, num_heads * d_head)
