"""The search: the right first hit, a word with one wrong letter, nothing where nothing is, and keys."""

import re

import pytest

# What a reader types, and where it must lead: first the first result, then what must be among the first three.
QUERIES = {
    "softmax": ["glossary.html#term-softmax", "02_self_attention.html#letting-the-tokens-decide"],
    "embedding": ["glossary.html#term-embedding", "01_tokens.html#from-ids-to-rows"],
    "flash attention": ["glossary.html#term-FlashAttention", "12_efficiency.html#one-block-at-a-time"],
    "learning rate warmup": ["glossary.html#term-learning-rate-schedule", "07_decoder.html#training-for-real"],
    "logit lens": ["glossary.html#term-logit-lens", "07_decoder.html#what-the-stream-says-on-the-way"],
    "KV cache": ["glossary.html#term-keyvalue-cache", "08_generation.html#the-cache"],
    "parameter count": ["glossary.html#term-parameter", "04_blocks.html#counting"],
    "backpropagation": ["glossary.html#term-backpropagation", "00_primer.html#the-gradient-goes-back"],
    "LoRA": ["glossary.html#term-LoRA", "17_finetuning.html#two-thin-matrices"],
    "rotary": ["06_positions.html#rotary"],
    "RoPE": ["06_positions.html#rotary"],
    "layer norm": ["glossary.html#term-layer-normalisation", "04_blocks.html#keeping-the-numbers-in-range"],
    "LN": ["glossary.html#term-layer-normalisation"],
    "BPE": ["glossary.html#term-byte-pair-encoding", "01_tokens.html#between-words-and-characters-byte-pair-encoding"],
    "why divide by sqrt": ["02_self_attention.html#why-divide-by-the-root"],
    "attention": ["02_self_attention.html#attention", "glossary.html#term-attention"],
    "multi-head attention": ["chapters/03_multi_head.html", "glossary.html#term-multi-head-attention"],
    "causal mask": ["glossary.html#term-causal-mask", "02_self_attention.html#masks"],
    "positional encoding": ["glossary.html#term-positional-encoding", "chapters/06_positions.html"],
    "beam search": ["glossary.html#term-beam-search", "08_generation.html#searching-for"],
    "temperature": ["08_generation.html#temperature", "glossary.html#term-temperature"],
    "residual stream": ["glossary.html#term-residual-stream", "04_blocks.html#where-the-norm-goes"],
    "cross-attention": ["glossary.html#term-cross-attention", "10_seq2seq.html#two-sequences-cross-attention"],
    "vision transformer": ["glossary.html#term-vision-transformer", "11_vision.html#the-model"],
    "quantization": ["glossary.html#term-quantisation", "12_efficiency.html#fewer-bytes"],
    "speculative decoding": ["glossary.html#term-speculative-decoding", "12_efficiency.html#a-small-model-guesses"],
    "gqa": ["glossary.html#term-grouped-query-attention", "12_efficiency.html#fewer-keys-and-values"],
    "perplexity": ["glossary.html#term-perplexity", "07_decoder.html#how-wrong"],
    "mixture of experts": ["glossary.html#term-expert", "20_modern.html#many-networks"],
    "DPO": ["glossary.html#term-direct-preference-optimisation", "17_finetuning.html#preferring"],
    "scaling laws": ["chapters/19_scaling_laws.html", "glossary.html#term-scaling-law"],
    "tokenizer": ["glossary.html#term-tokeniser", "01_tokens.html#by-hand"],
    "dropout": ["05_depth.html#dropout", "glossary.html#term-dropout"],
    "fine-tuning": ["chapters/17_finetuning.html", "glossary.html#term-fine-tuning"],
    "induction head": ["glossary.html#term-induction-head", "16_inside.html#four-more-ways"],
    "teacher forcing": ["glossary.html#term-teacher-forcing", "10_seq2seq.html#training-the-true"],
    "loss too low": ["B_mistakes.html#the-loss-is-too-low"],
    "garbage after the first token": ["B_mistakes.html#the-first-token-is-right-then-garbage"],
    "NaN in one row": ["B_mistakes.html#nan-in-one-row"],
    "pf.attend": ["api.html#plainformer.attention.self_attention.attend"],
    "KeyValueCache": ["api.html#plainformer.attention.cache.KeyValueCache"],
    "gradient descent": ["glossary.html#term-gradient-descent", "00_primer.html#a-step-downhill"],
}
SLIPS = {
    "atention": "attention",  # codespell:ignore atention
    "sofmax": "softmax",
    "embeddding": "embedding",  # codespell:ignore embeddding
    "transfomer": "transformer",  # codespell:ignore transfomer
    "rotray embedding": "rotary embedding",
    "beam serch": "beam search",  # codespell:ignore serch
    "drapout": "dropout",
}
FOUND = "#search-found li"


def ask(page, query: str) -> list[str]:
    """Type a query and return where its first results lead."""
    page.locator("#pst-search-dialog input").fill("")
    page.locator(FOUND).first.wait_for(state="detached")
    page.locator("#pst-search-dialog input").fill(query)
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


def test_search_answers_as_one_types(searching):
    """A word that nobody knows costs the most, as it is held against every other one."""
    seconds = searching.page.evaluate(
        """async (address) => {
            const {prepare, search} = await import(new URL("_static/search.mjs", address));
            const index = prepare(await (await fetch(new URL("_static/search.json", address))).json());
            const start = performance.now();
            for (const query of ["drapout", "the rotray of a los", "xyzzyxyz"]) search(index, query);
            return (performance.now() - start) / 3000;
        }""",
        searching.page.url,
    )
    assert seconds < 0.25


def test_search_finds_nothing_where_nothing_is(searching):
    searching.page.locator("#pst-search-dialog input").fill("xyzzy")
    searching.page.get_by_text("Nothing was found.").wait_for()
    searching.page.locator("#pst-search-dialog input").fill("<img src=x onerror=alert(1)>")
    searching.page.wait_for_timeout(300)
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
    page.wait_for_url("**/02_self_attention.html#why-divide*")
    assert page.locator(":target h2").is_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("softmax")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=softmax*")
    page.locator("#search-results li a").first.wait_for()
    assert visit.errors == visit.foreign == []
