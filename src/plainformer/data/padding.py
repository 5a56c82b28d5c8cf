"""Texts of unequal length as rows of one array."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from plainformer.checks import Positive, checked
from plainformer.data.lists import check_list, check_token_ids


class PaddedTexts(NamedTuple):
    """Texts, one per row, `ids`, and where a row has a token, `is_token`."""

    ids: Int[Array, "texts seq"]
    is_token: Bool[Array, "texts seq"]


@checked
def pad_texts(texts, length: Positive | None = None, *, cut: bool = False) -> PaddedTexts:
    """Put texts, lists of token ids, one below the other, filled up on the right to `length`, or else to the longest.

    The ids are 0 where there is no token. The id 0 may well be a token too: only `is_token` tells. Of a text that is
    longer than `length`, only the beginning is kept where `cut` says so.

    Raises:
        ValueError: if there is no text, one is empty or, without `cut`, longer than a given `length`, or an id is out
            of range.
    """
    check_list("texts", texts, "texts, each a list of token ids")
    rows = [_ids_of_text(place, ids) for place, ids in enumerate(texts)]
    if not rows:
        raise ValueError("texts is empty; expected at least one list of token ids.")
    if cut and length is not None:
        rows = [row[:length] for row in rows]
    lengths = np.array([len(row) for row in rows])
    longest = int(lengths.max())
    length = longest if length is None else length
    if longest > length:
        place = int(np.argmax(lengths > length))
        hint = f"Cut it, by cut=True, or pad to length={longest}, which holds all texts."
        raise ValueError(f"texts[{place}] has {lengths[place]} tokens; expected at most {length}. {hint}")
    is_token = np.arange(length) < lengths[:, None]
    ids = np.zeros(is_token.shape, np.int32)
    ids[is_token] = np.concatenate(rows)
    return PaddedTexts(jnp.asarray(ids), jnp.asarray(is_token))


def _ids_of_text(place: int, text) -> list[int]:
    ids = check_token_ids(text, name=f"texts[{place}]")
    if not ids:
        raise ValueError(f"texts[{place}] is empty; expected at least one token, such as a start or a class token.")
    return ids
