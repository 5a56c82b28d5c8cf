"""The live figure of byte-pair encoding: what it learns is what the package learns."""

import pytest

from plainformer.tokens.bpe import BytePairEncoder

TEXTS = [
    "low lower lowest newer newest wider widest",
    "aaaa aaaaa aaaaaaa aa",
    "Größe, größer, am größten: 12 Straßen & 123 Flüße",
    "it's they're we've I'll don't 'tis",
    "注意力 注意 注意力机制 意力",
    "👩‍👩‍👧 👩‍👧 e\u0301e\u0301 é  two  spaces   three \u3000\u00a0x\u0085y\ufeffz ",
]


def check_bpe(state):
    encoder = BytePairEncoder.train(state["text"], 256 + state["applied"])
    assert [tuple(pair) for pair in state["merges"]] == list(encoder.merges)
    assert state["ids"] == encoder.encode(state["text"])
    assert state["vocabulary"] == len(encoder)
    assert state["bytes"] == len(state["text"].encode())
    assert state["tokens"] == len(state["ids"])
    spelling = {number: token for token, number in encoder.vocabulary.items()}
    assert state["spelled"] == [spelling[number] for number in state["ids"]]
    if state["next"]:
        another = BytePairEncoder.train(state["text"], 257 + state["applied"])
        assert tuple(state["next"]["pair"]) == another.merges[-1]


@pytest.mark.parametrize("text", TEXTS)
def test_bpe_merges_are_those_of_python(shared_figures, text):
    figure = shared_figures("bpe")
    figure.root.get_by_label("Text", exact=True).fill(text)
    assert figure.state["text"] == text
    check_bpe(figure.state)
    merges = figure.root.get_by_label("Merges", exact=True)
    figure.press(merges, "End")
    assert figure.state["next"] is None
    check_bpe(figure.state)
    figure.press(merges, "Home", "ArrowRight", "ArrowRight")
    assert figure.state["applied"] == min(2, int(merges.get_attribute("max")))
    check_bpe(figure.state)


def test_bpe_steps_one_merge_at_a_time(shared_figures):
    figure = shared_figures("bpe")
    start = figure.state
    button = figure.root.get_by_role("button", name="Merge one")
    button.click()
    figure.press(button, "Enter")
    assert figure.state["applied"] == start["applied"] + 2
    assert figure.state["merges"][start["applied"]] == start["next"]["pair"]
    for _ in range(2):
        figure.root.get_by_role("button", name="Undo one").click()
    assert figure.state == start


def test_bpe_shows_what_is_typed_and_never_runs_it(shared_figures):
    figure = shared_figures("bpe")
    figure.root.get_by_label("Text", exact=True).fill("<img src=x onerror=alert(1)>")
    check_bpe(figure.state)
    assert figure.root.locator("img").count() == 0
    chips = figure.root.locator(".lf-word .lf-chip").all_inner_texts()
    assert "".join(chips).replace("␣", " ") == "<img src=x onerror=alert(1)>"


def test_bpe_with_nothing_to_encode(shared_figures):
    figure = shared_figures("bpe")
    figure.root.get_by_label("Text", exact=True).fill("")
    assert (figure.state["tokens"], figure.state["merges"]) == (0, [])
    assert figure.summary == "Type a text."
    figure.press(figure.root.get_by_role("button", name="Merge one"), "Enter")
    assert figure.state["applied"] == 0


def test_bpe_spells_as_the_files_do(shared_figures):
    figure = shared_figures("bpe")
    figure.root.get_by_label("Text", exact=True).fill("a é")
    figure.press(figure.root.get_by_label("Merges", exact=True), "Home")
    chips = figure.root.locator(".lf-word .lf-chip")
    assert chips.all_inner_texts() == ["a", "␣", "C3", "A9"]
    figure.control("spell tokens").check()
    assert chips.all_inner_texts() == ["a", "Ġ", "Ã", "©"]
