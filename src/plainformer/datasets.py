"""Examples of unequal length made into arrays; labelled texts, pairs of sentences and small images to learn from."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from plainformer.errors import check_list, check_positive, check_token_ids


def pad_texts(texts, length: int | None = None) -> tuple[Int[Array, "texts seq"], Bool[Array, "texts seq"]]:
    r"""Put texts of unequal length one below the other, filled up on the right.

    **Arguments**

    - `texts`: a list of lists of token ids, each of at least one.
    - `length`: the number of columns; `None` for as many as the longest text has tokens.

    **Returns** the ids `(num_texts, length)`, int32, 0 where there is no token; and `is_token`, of the same shape,
    Boolean, `True` where there is one. The id 0 may well be a token too: only `is_token` tells.

    **Raises** `ValueError` if there is no text, one is empty, one is longer than `length` or an id is none; `TypeError`
    if a text is a string, or its ids are not whole numbers.
    """
    check_list("texts", texts, "texts, each a list of token ids")
    if length is not None:
        check_positive(length=length)
    rows = [_ids_of_text(place, ids) for place, ids in enumerate(texts)]
    if not rows:
        raise ValueError("texts is empty; wanted at least one list of token ids.")
    lengths = np.array([len(row) for row in rows])
    if length is None:
        length = int(lengths.max())
    if lengths.max() > length:
        place = int(np.argmax(lengths > length))
        raise ValueError(
            f"texts[{place}] has {lengths[place]} tokens; wanted at most {length}, the length asked for. "
            f"Cut it, or pad to length={lengths.max()}, which holds all texts."
        )
    is_token = np.arange(length) < lengths[:, None]
    ids = np.zeros(is_token.shape, np.int32)
    ids[is_token] = np.concatenate(rows)
    return jnp.asarray(ids), jnp.asarray(is_token)


def _ids_of_text(place: int, text) -> list[int]:
    try:
        ids = check_token_ids(text)
    except (ValueError, TypeError) as error:
        raise type(error)(f"texts[{place}]: {error}") from error
    if not ids:
        raise ValueError(f"texts[{place}] is empty; wanted at least one token, such as a start or a class token.")
    return ids
