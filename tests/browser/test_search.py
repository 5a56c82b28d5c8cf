"""The search: the right first hit, a word with one wrong letter, nothing where nothing is, and keys."""

import re

import pytest

# What a reader types, and where it must lead: first the first result, then what must be among the first three.
QUERIES = {
    "softmax": ["glossary.html#term-softmax", "self_attention.html#letting-the-tokens-decide"],
    "logit lens": ["glossary.html#term-logit-lens", "real_text.html#what-the-stream-says-on-the-way"],
    "KV cache": ["glossary.html#term-keyvalue-cache", "generation.html#the-cache"],
    "LoRA": ["glossary.html#term-LoRA", "finetuning.html#two-thin-matrices"],
    "rotary": ["positions.html#rotary"],
    "LN": ["glossary.html#term-layer-normalisation"],
    "why divide by sqrt": ["self_attention.html#why-divide-by-the-root"],
    "attention": ["self_attention.html#attention", "glossary.html#term-attention"],
    "positional encoding": ["glossary.html#term-positional-encoding", "chapters/positions.html"],
    "temperature": ["generation.html#temperature", "glossary.html#term-temperature"],
    "quantization": ["glossary.html#term-quantisation", "efficiency.html#fewer-bytes"],
    "gqa": ["glossary.html#term-grouped-query-attention", "efficiency.html#fewer-keys-and-values"],
    "DPO": ["glossary.html#term-direct-preference-optimisation", "finetuning.html#preferring"],
    "tokenizer": ["glossary.html#term-tokeniser", "tokens.html#by-hand"],
    "fine-tuning": ["chapters/finetuning.html", "glossary.html#term-fine-tuning"],
    "loss too low": ["mistakes.html#the-loss-is-too-low"],
    "garbage after the first token": ["mistakes.html#the-first-token-is-right-then-garbage"],
    "pf.attend": ["api.html#plainformer.attention.self_attention.attend"],
}
SLIPS = {
    "atention": "attention",  # codespell:ignore atention
    "sofmax": "softmax",
    "rotray embedding": "rotary embedding",
}
FOUND = "#search-found li"


def ask(page, query: str) -> list[str]:
    """Type a query and return where its first results lead."""
    field = page.locator("#pst-search-dialog input")
    field.fill("")
    page.locator(FOUND).first.wait_for(state="detached")
    field.fill(query)
    page.locator(FOUND).first.wait_for()
    return page.locator(f"{FOUND} a").evaluate_all("links => links.slice(0, 3).map(link => link.href)")


@pytest.mark.parametrize("query", QUERIES)
def test_search_finds_the_section(searching, query):
    first, *others = QUERIES[query]
    results = ask(searching.page, query)
    assert first in results[0], results
    assert not [wanted for wanted in others if not [result for result in results if wanted in result]], results
    for words in searching.page.locator(f"{FOUND} p").all_inner_texts():
        assert not re.search(r"\\[a-z]|\$|Binder|Repository", words)


@pytest.mark.parametrize("query", SLIPS)
def test_search_reads_a_word_with_one_wrong_letter(searching, query):
    meant = SLIPS[query]
    assert ask(searching.page, query) == ask(searching.page, meant)
    ask(searching.page, query)
    said = searching.page.locator("#search-found [role=status]")
    assert said.locator("em").inner_text() == meant
    assert said.inner_text().startswith(f"Showing results for {meant}. ")


def test_search_leaves_words_alone_that_are_known_or_unfinished(searching):
    for query in ("softmax", "softm", "rnn", "tokenizer", "of the mask"):
        ask(searching.page, query)
        assert searching.page.locator("#search-found em").count() == 0, query


def test_search_finds_nothing_where_nothing_is(searching):
    searching.page.locator("#pst-search-dialog input").fill("xyzzy")
    searching.page.get_by_text("Nothing was found.").wait_for()
    searching.page.locator("#pst-search-dialog input").fill("<img src=x onerror=alert(1)>")
    searching.quiet()
    assert searching.page.locator(f"{FOUND} img").count() == 0


def test_search_field_shows_what_is_typed(searching):
    """The magnifying glass stands before the words."""
    field, glass = searching.page.locator("#pst-search-dialog :is(input, .fa-magnifying-glass)").all()[::-1]
    start = field.evaluate("node => node.getBoundingClientRect().x + parseFloat(getComputedStyle(node).paddingLeft)")
    box = glass.bounding_box()
    assert box["x"] + box["width"] <= start


def test_search_works_by_keys(open_page):
    visit = open_page("index.html")
    page = visit.page
    page.keyboard.press("Control+k")
    page.keyboard.type("why divide")
    page.locator(FOUND).first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/self_attention.html#why-divide*")
    assert page.locator(":target h2").is_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("softmax")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=softmax*")
    page.locator("#search-results li a").first.wait_for()
    assert visit.errors == visit.foreign == []
