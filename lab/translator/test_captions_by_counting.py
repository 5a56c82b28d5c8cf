"""The opponent of the translator of captions, on a dozen invented pairs."""

import pytest

from lab.translator import captions_by_counting
from lab.translator.captions_by_counting import (
    START,
    Cutter,
    PhraseTranslator,
    aligned,
    grown,
    joined,
    most_similar,
    phrases,
    tuned,
)

PAIRS = [
    ("Ein Mann schläft.", "A man sleeps."),
    ("Ein Hund schläft.", "A dog sleeps."),
    ("Ein Hund rennt.", "A dog runs."),
    ("Der Mann rennt.", "The man runs."),
    ("Der Hund trägt einen Ball.", "The dog carries a ball."),
    ("Der Mann trägt einen Hut.", "The man carries a hat."),
    ("Ein roter Hut.", "A red hat."),
    ("Ein roter Ball.", "A red ball."),
    ("Ein Mann, der einen Ball trägt.", "A man who carries a ball."),
    ("Ein Hund, der einen Hut trägt.", "A dog who carries a hat."),
    ("Ein Stock.", "A stick."),
    ("Der Stock.", "The stick."),
    ("Das Haus.", "The house."),
    ("Ein Haus.", "A house."),
]


@pytest.fixture(scope="module")
def translator():
    return PhraseTranslator(PAIRS)


def test_model_1_finds_the_words(translator):
    english = {"Mann": "man", "Hund": "dog", "rennt": "runs", "roter": "red", "Hut": "hat", "Haus": "house"}
    for one, other in english.items():
        chances = {word: chance for (given, word), chance in translator.words.items() if given == one}
        assert max(chances, key=chances.__getitem__) == other
    sources, targets = [("der", "Hund"), ("Hund",), ("der",)], [("the", "dog"), ("dog",), ("the",)]
    assert aligned(sources, targets)[1] == [{(0, 0), (1, 1)}, {(0, 0)}, {(0, 0)}]


def test_links_grow_by_neighbours():
    # (1, 1) and (2, 2) lie next to links but give no word its first; (3, 3) and (5, 0) give two words theirs.
    links = grown({(1, 2), (2, 1), (2, 2), (3, 3)}, {(1, 2), (2, 1), (1, 1), (5, 0)})
    assert links == {(1, 2), (2, 1), (3, 3), (5, 0)}


def test_phrases_are_consistent_with_the_links():
    found = set(phrases(("a", "b", "c"), ("A", "C", "x", "B"), {(0, 0), (1, 3), (2, 1)}))
    assert found == {
        (("a",), ("A",)),
        (("b",), ("B",)),
        (("b",), ("x", "B")),  # x has no link and may go with either
        (("c",), ("C",)),
        (("c",), ("C", "x")),
        (("b", "c"), ("C", "x", "B")),
        (("a", "b", "c"), ("A", "C", "x", "B")),
    }


def test_words_are_put_in_the_order_of_the_language_model(translator):
    german = "Ein Hund, der einen Stock trägt."  # seen with others, never with a stick
    assert translator.translate(german) == "A dog who carries a stick."
    translator.weights = START | {"jump": 100.0}
    assert translator.translate(german).endswith("stick carries.")
    translator.weights = START


def test_texts_are_cut_and_joined():
    cut = Cutter(["Das rote Haus.", "Im Haus das Boot.", "Ein Boot"], has_compounds=True)
    assert cut("Das Hausboot!") == ("das", "Haus", "Boot", "!")
    assert cut("Haus") == ("Haus",)
    assert joined(("a", "man", "'s", "dog", ",", "(", "red", ")", '"', "Rex", '"', ".")) == 'A man\'s dog, (red) "Rex".'


def test_what_is_most_similar():
    assert most_similar(PAIRS, ["Ein grünes Haus."]) == ["A house."]


def test_weights_are_chosen_by_bleu(translator, monkeypatch):
    german = "Ein Hund, der einen Stock trägt."
    monkeypatch.setattr(captions_by_counting, "STEPS", (10.0,))
    assert tuned(translator, [(german, "A dog who carries a stick.")]) == START  # nothing is better than all right
    assert tuned(translator, [(german, "A dog who a stick carries.")]) == START | {"jump": START["jump"] + 10}
    translator.weights = START
