"""Chapter 21: pages that texts share, and attention over them."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies
from tiers import few_in_the_gate
from toy_models import Bigram, drawn

import plainformer as pf
from plainformer.generation import PageTables, place_in_pages
from plainformer.generation.pages import copy_pages, extend_in_pages, make_pages

SIZE = 4
extend = eqx.filter_jit(lambda model, *arguments: model.extend(*arguments))
in_pages = eqx.filter_jit(extend_in_pages)


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


def test_two_texts_with_a_common_beginning_store_it_once():
    tables, beginning = PageTables(num_pages=20, page_size=4), list(range(12))
    for text in range(5):
        tokens = [*beginning, 50 + text]
        for token in tokens[tables.begin(text, tokens) :]:
            tables.append(text, token)
    assert tables.num_held == 3 + 5  # three pages of all, and one of each


def model_with(**options):
    stack = pf.StackConfig(d_model=12, num_layers=2, num_heads=6, d_ff=10, **options)
    return drawn(pf.Decoder, pf.DecoderConfig(11, 20, stack=stack))


OPTIONS = [{"position_scheme": scheme} for scheme in ("rotary", "alibi", "learned", "sinusoidal", "relative")]
OPTIONS += [{"num_kv_heads": 2, "d_k": 4, "d_v": 5}, {"position_scheme": "rotary", "window": 5}]


@pytest.mark.equation("eq-serving-page-table")
@pytest.mark.parametrize("options", few_in_the_gate(OPTIONS, 3), ids=str)
def test_attention_over_pages_is_that_over_an_ordinary_cache(options):
    """Two texts of unequal length in scattered pages, the second shorter by a page and a half, then a token of each."""
    model, ids = model_with(**options), np.random.default_rng(1).integers(0, 11, (2, 13))
    pages, tables = make_pages(model, 9, SIZE), jnp.array([[7, 2, 5, 0], [3, 8, 9, 9]])
    lengths = (12, 6)
    for start in (0, 4, 8):
        piece = np.array([[p if p < length else -1 for p in range(start, start + 4)] for length in lengths])
        _, pages = in_pages(model, pages, tables, jnp.asarray(np.where(piece < 0, 0, ids[:, start : start + 4])), piece)
    last = jnp.asarray([[ids[0, 12]], [ids[1, 6]]])
    rows, _ = in_pages(model, pages, tables, last, jnp.array([[12], [6]]))
    for text, length in enumerate(lengths):
        cache = model.make_cache(20)
        _, cache = extend(model, jnp.asarray(ids[text, :length]), cache)
        expected, _ = extend(model, last[text], cache)
        np.testing.assert_allclose(rows[text], expected, rtol=1e-5, atol=1e-5)


def test_copy_pages_copies_keys_and_values():
    model = model_with()
    pages = tuple((keys + jnp.arange(4.0)[:, None, None, None], values) for keys, values in make_pages(model, 3, SIZE))
    copied = copy_pages(pages, jnp.array([2, 3]), jnp.array([0, 3]))
    assert np.asarray(copied[0][0])[:, 0, 0, 0].tolist() == [2, 1, 2, 3]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda tables: tables.append(0, 1),
            ValueError,
            r"All 1 pages are held, by 1 texts; expected a free one\. Make",
        ),
        (
            lambda tables: tables.begin(0, [1]),
            ValueError,
            r"text is 0, which has begun already; expected a new one",
        ),
        (
            lambda tables: tables.append(1, 1),
            ValueError,
            r"text is 1, which has not begun; expected one of \[0\]",
        ),
        (lambda tables: tables.end(1), ValueError, r"text is 1, which has not begun"),
        (lambda tables: tables.begin(1, 3), TypeError, r"tokens is 3; expected a list of ids"),
        (lambda tables: PageTables(0, 2), ValueError, r"num_pages is 0; expected at least 1"),
        (lambda tables: make_pages(Bigram(np.eye(3)), 3, 2), TypeError, r"cache are none; expected KeyValueCache"),
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
