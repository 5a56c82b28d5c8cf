"""Pages that texts share; test_serving.py attends over them."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies
from toy_models import Bigram

from plainformer.generation import PageTables, place_in_pages
from plainformer.generation.pages import make_pages

SIZE = 4


@pytest.mark.equation("eq-serving-page-table")
def test_place_in_pages_by_hand():
    pages, slots = place_in_pages(jnp.array([[7, 2, 5], [0, 9, 9]]), jnp.array([[0, 5, 11], [3, 3, 4]]), SIZE)
    np.testing.assert_array_equal(pages, [[7, 2, 5], [0, 0, 9]])
    np.testing.assert_array_equal(slots, [[0, 1, 3], [3, 3, 0]])


def test_page_tables_by_hand():
    tables = PageTables(num_pages=5, page_size=2)
    assert tables.begin(0, [1, 2, 3]) == 0
    assert [tables.append(0, token) for token in (1, 2, 3)] == [(0, 0, None), (0, 1, None), (1, 0, None)]
    assert tables.begin(1, [1, 2, 3, 4]) == 3  # all of text 0, with a page that has one free slot
    assert (tables.tables[1], tables.counts) == ([0, 1], [2, 2, 0, 0, 0])
    assert tables.append(1, 4) == (2, 1, 1)  # into a copy of page 1
    assert tables.append(0, 9) == (1, 1, None)  # which now is of text 0 alone
    assert tables.counts == [2, 1, 1, 0, 0]
    tables.end(0)
    assert (tables.counts, tables.num_held) == ([1, 0, 1, 0, 0], 2)


def test_page_tables_never_share_the_last_token_which_has_to_be_read():
    tables = PageTables(num_pages=4, page_size=2)
    tables.begin(0, [1, 2])
    for token in (1, 2):
        tables.append(0, token)
    assert tables.begin(1, [1, 2]) == 1
    assert tables.begin(2, [5]) == 0


class Ordinary:
    """The same texts without pages, and what stands in the slots of each page, as a model would write them."""

    def __init__(self, num_pages):
        self.tables, self.texts = PageTables(num_pages, SIZE), {}
        self.slots = np.full((num_pages, SIZE), -1)

    def append(self, text, token):
        page, slot, copied_from = self.tables.append(text, token)
        if copied_from is not None:
            self.slots[page] = self.slots[copied_from]
        self.slots[page, slot] = token
        self.texts[text].append(token)

    def begin(self, text, tokens):
        shared = self.tables.begin(text, tokens)
        self.texts[text] = list(tokens[:shared])
        for token in tokens[shared:]:
            self.append(text, token)

    def end(self, text):
        self.tables.end(text)
        del self.texts[text]

    def check(self):
        tables = self.tables
        held = [page for table in tables.tables.values() for page in table]
        assert tables.counts == [held.count(page) for page in range(len(tables.counts))]
        for text, tokens in self.texts.items():
            table = tables.tables[text]
            assert len(table) == len(set(table)) == -(-len(tokens) // SIZE)
            assert self.slots[table].ravel()[: len(tokens)].tolist() == tokens
        for page in set(held):  # it is in several tables only at one place, behind one beginning
            ways = {tuple(table[: table.index(page)]) for table in tables.tables.values() if page in table}
            assert len(ways) == 1


@given(
    strategies.lists(
        strategies.tuples(
            strategies.sampled_from(["begin", "fork", "append", "append", "end"]),
            strategies.integers(0, 5),
            strategies.lists(strategies.integers(0, 1), min_size=1, max_size=11),
        ),
        max_size=40,
    )
)
def test_page_tables_keep_every_text_as_an_ordinary_cache_does(steps):
    found = Ordinary(num_pages=200)
    for number, (kind, which, tokens) in enumerate(steps):
        texts = list(found.texts)
        if kind == "begin":
            found.begin(number, tokens)
        elif texts:
            text = texts[which % len(texts)]
            if kind == "fork":
                found.begin(number, found.texts[text] + tokens[:1])
            elif kind == "append":
                found.append(text, tokens[0])
            else:
                found.end(text)
        found.check()
    for text in list(found.texts):
        found.end(text)
    assert found.tables.counts == [0] * 200


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda tables: tables.append(0, 1), ValueError, "pages are held"),
        (lambda tables: tables.begin(0, [1]), ValueError, "text"),
        (lambda tables: tables.append(1, 1), ValueError, "text"),
        (lambda tables: tables.end(1), ValueError, "text"),
        (lambda tables: tables.begin(1, 3), TypeError, "tokens"),
        (lambda tables: make_pages(Bigram(np.eye(3)), 3, 2), TypeError, "cache"),
    ],
)
def test_pages_say_what_is_wrong(call, error, message, unchecked):
    tables = PageTables(1, 2)
    tables.begin(0, [1, 2])
    tables.append(0, 1)
    tables.append(0, 2)
    with pytest.raises(error, match=message):
        call(tables)
    assert tables.counts == [1]
