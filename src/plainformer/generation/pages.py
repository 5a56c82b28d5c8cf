"""Pages of a cache: who holds which, and reading on in them (chapter on serving)."""

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from plainformer.attention.cache import KeyValueCache
from plainformer.checks import Natural, Positive, checked
from plainformer.data.lists import check_list, check_token_ids


class Slot(NamedTuple):
    """Where a token of a text goes: into which `slot` of which `page`, into which `copied_from` is copied first, or
    `None`."""

    page: int
    slot: int
    copied_from: int | None


class PageTables:
    r"""Which pages of a cache hold which text, where a common beginning of two texts is held once.

    After Kwon et al. (2023), section 4, and Zheng et al. (2024), section 3, whose tree of beginnings is a search here.
    Texts have numbers. A page that several hold is never written to: whoever wants to gets a copy.

    Args:
        num_pages: how many pages there are.
        page_size: for how many tokens a page has room.

    Example:
        Two texts of five tokens, of which three are the same, in pages of two.

        >>> from plainformer.generation import PageTables
        >>> tables = PageTables(num_pages=8, page_size=2)
        >>> tables.begin(0, [5, 6, 7, 8, 9]), [tables.append(0, token).page for token in [5, 6, 7, 8, 9]]
        (0, [0, 0, 1, 1, 2])
        >>> tables.begin(1, [5, 6, 7, 1, 2]), tables.append(1, 1), tables.append(1, 2)
        (3, Slot(page=3, slot=1, copied_from=1), Slot(page=4, slot=0, copied_from=None))
        >>> tables.tables
        {0: [0, 1, 2], 1: [0, 3, 4]}
    """

    @checked
    def __init__(self, num_pages: Positive, page_size: Positive):
        self.page_size = page_size
        self.counts = [0] * num_pages
        """How many texts hold each page."""
        self.tables: dict[int, list[int]] = {}
        """The pages of each text, in order."""
        self.tokens: dict[int, list[int]] = {}
        """What each text holds in them."""

    @checked
    def begin(self, text: Natural, tokens: Sequence[int]) -> int:
        """Let a text begin with the pages that another one begins with; return how many of its tokens it has so.

        The last token is never among them: a model has to read it, to say what comes next.
        """
        check_list("tokens", tokens, "ids, such as [1, 2]")
        tokens = check_token_ids(tokens, name="tokens")
        if text in self.tables:
            raise ValueError(f"text is {text}, which has begun already; expected a new one, or end it first.")
        found = [(_common_length(tokens[:-1], held), other) for other, held in self.tokens.items()]
        shared, other = max(found, default=(0, text))
        pages = self.tables[other][: -(-shared // self.page_size)] if shared else []
        for page in pages:
            self.counts[page] += 1
        self.tables[text], self.tokens[text] = list(pages), list(tokens[:shared])
        return shared

    @checked
    def append(self, text: Natural, token: Natural) -> Slot:
        """Give a text's next token its place."""
        table, slot, copied_from = self._table(text), len(self.tokens[text]) % self.page_size, None
        if slot == 0:
            table.append(self._take())
        elif self.counts[table[-1]] > 1:
            copied_from, table[-1] = table[-1], self._take()
            self.counts[copied_from] -= 1
        self.tokens[text].append(token)
        return Slot(table[-1], slot, copied_from)

    @checked
    def end(self, text: Natural) -> None:
        """Let a text end: its pages are free, but for those that another one holds."""
        for page in self._table(text):
            self.counts[page] -= 1
        del self.tables[text], self.tokens[text]

    @property
    def num_held(self) -> int:
        """How many pages are held."""
        return sum(count > 0 for count in self.counts)

    def _table(self, text: int) -> list[int]:
        if text not in self.tables:
            raise ValueError(f"text is {text}, which has not begun; expected one of {list(self.tables)}.")
        return self.tables[text]

    def _take(self) -> int:
        """A free page, which is held once from now on."""
        if 0 not in self.counts:
            raise ValueError(
                f"All {len(self.counts)} pages are held, by {len(self.tables)} texts; expected a free one. Make more "
                "pages, or end a text first."
            )
        page = self.counts.index(0)
        self.counts[page] = 1
        return page


def _common_length(one: list[int], other: list[int]) -> int:
    """With how many equal tokens two texts begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@checked
def place_in_pages(
    tables: Integer[Array, "*batch num_pages"], positions: Integer[Array, "*batch seq"], page_size: Positive
) -> tuple[Integer[Array, "*batch seq"], Integer[Array, "*batch seq"]]:
    r"""Return in which page, and in which slot of it, the tokens at these positions of a text stand.

    Implements `eq-serving-page-table`; Kwon et al. (2023), section 4.1.
    """
    return jnp.take_along_axis(tables, positions // page_size, axis=-1), positions % page_size


Pages = tuple[tuple[Float[Array, "pages kv_heads d_k page_size"], Float[Array, "pages kv_heads page_size d_v"]], ...]


def make_pages(model, num_pages: int, page_size: int) -> Pages:
    """Return the empty pages of a model: keys and values for each block, and one page more for what nobody reads."""
    parts = model.make_cache(page_size, batch=(num_pages + 1,))
    kinds = sorted({type(part).__name__ for part in parts}) or ["none"]
    if kinds != [KeyValueCache.__name__]:
        raise TypeError(f"The parts of the model's cache are {', '.join(kinds)}; expected KeyValueCache, to be cut up.")
    return tuple((part.keys, part.values) for part in parts)


def cache_of_pages(
    pages: Pages, tables: Integer[Array, "batch num_pages"], lengths: Integer[Array, " batch"], seq: int
) -> tuple[KeyValueCache, ...]:
    """Return the cache of texts whose pages these are, each of its own length, with room for so many tokens more."""
    parts = []
    for keys, values in pages:
        (_, kv_heads, d_k, size), d_v = keys.shape, values.shape[-1]
        batch, capacity = len(tables), tables.shape[1] * size
        slots = jnp.arange(capacity)
        held = jnp.where(slots < lengths[:, None], slots, -1)
        keys = jnp.moveaxis(keys[tables].mT, 2, 1).reshape(batch, kv_heads, capacity, d_k)
        values = jnp.moveaxis(values[tables], 2, 1).reshape(batch, kv_heads, capacity, d_v)
        empty = KeyValueCache(kv_heads, capacity + seq, d_k, d_v, batch=(batch,), dtype=keys.dtype)
        parts.append(empty.append(keys, values, held))
    return tuple(parts)


def extend_in_pages(
    model,
    pages: Pages,
    tables: Integer[Array, "batch num_pages"],
    tokens: Integer[Array, "batch seq"],
    positions: Integer[Array, "batch seq"],
) -> tuple[Float[Array, "batch seq d_model"], Pages]:
    """Read further tokens of texts whose pages these are; return the last block's rows, and the pages with the tokens.

    `positions` say where the tokens stand in their texts, -1 for padding, which stands behind them and goes into the
    last page, that no text has.
    """
    first, seq = jnp.maximum(positions[:, 0], 0), tokens.shape[1]
    rows, cache = model.extend(tokens, cache_of_pages(pages, tables, first, seq), positions)
    page, slot = place_in_pages(tables, jnp.maximum(positions, 0), pages[0][0].shape[-1])
    page = jnp.where(positions < 0, len(pages[0][0]) - 1, page)

    def written(part, old):
        keys, values = part.keys[..., -seq:], part.values[..., -seq:, :].mT  # of the new tokens, a column each
        keys, values = (jnp.moveaxis(each, -1, 1) for each in (keys, values))
        return old[0].at[page, :, :, slot].set(keys), old[1].at[page, :, slot].set(values)

    return rows, tuple(map(written, cache, pages))


def copy_pages(pages: Pages, sources: Integer[Array, " copies"], targets: Integer[Array, " copies"]) -> Pages:
    """Return the pages after some have been copied."""

    def copied(room):
        return room.at[targets].set(room[sources])

    return tuple((copied(keys), copied(values)) for keys, values in pages)
