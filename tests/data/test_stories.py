"""Stories of the little world: what they tell is true, and every word has the probability that is said."""

import math
import re
from collections import Counter

import numpy as np
import pytest

from plainformer.data.little_world import after, sentences
from plainformer.data.stories import next_words, possible_sentences, stories, word_kinds, word_surprises

ROOMS = {"garden", "kitchen", "hall", "cellar"}
BEGUN = ". the box is in the hall . the lamp is in the box . Anna is in the hall . Ben is in the cellar ."


@pytest.fixture(scope="module")
def told():
    return stories(60, seed=3)


class Witness:
    """Follows a story by itself, from what each sentence says, and knows the answers."""

    def __init__(self):
        self.at, self.switches, self.weather = {}, {}, None

    def room(self, name):
        while name not in ROOMS:
            name = self.at[name]
        return name

    def holder(self, thing):
        while thing not in ROOMS:
            thing = self.at[thing]
            if thing in ("Anna", "Ben", "Clara"):
                return thing
        return "nobody"

    def hears(self, text):
        """Take in a sentence; return what it should have said at its end, where that follows from what was told."""
        if found := re.fullmatch(r"where is (?:the )?(\w+) \? \w+", text):
            return self.room(found[1])
        if found := re.fullmatch(r"who has the (\w+) \? \w+", text):
            return self.holder(found[1])
        if re.fullmatch(r"is it light \? \w+", text):
            return "yes" if sorted(self.switches.values()) == ["down", "up"] else "no"
        if found := re.fullmatch(r"\w+ wears \w+", text):
            return {"wet": "boots", "cold": "gloves", "hot": "sandals"}[self.weather]
        if found := re.fullmatch(r"the (\w+) switch goes (\w+)", text):
            wanted = {"up": "down", "down": "up"}[self.switches[found[1]]]
            self.switches[found[1]] = found[2]
            return wanted
        self.learns(text)
        return text.split()[-1]

    def learns(self, text):
        if found := re.fullmatch(r"it is (\w+)", text):
            self.weather = found[1]
        elif found := re.fullmatch(r"the (\w+) switch is (\w+)", text):
            self.switches[found[1]] = found[2]
        elif found := re.fullmatch(r"(?:the )?(\w+) is in the (\w+)", text):
            assert found[1] not in self.at, "this is no news"
            self.at[found[1]] = found[2]
        elif found := re.fullmatch(r"(\w+) goes to the (\w+)", text):
            assert self.at[found[1]] != found[2], "whoever is there need not go there"
            self.at[found[1]] = found[2]
        elif found := re.fullmatch(r"(\w+) takes the (\w+)", text):
            assert self.at[found[2]] == self.at[found[1]], "what lies in another room cannot be taken"
            self.at[found[2]] = found[1]
        elif found := re.fullmatch(r"(\w+) drops the (\w+)", text):
            assert self.at[found[2]] == found[1], "what one does not have cannot be dropped"
            self.at[found[2]] = self.at[found[1]]
        elif found := re.fullmatch(r"(\w+) puts the (\w+) in the box", text):
            assert self.at[found[2]] == found[1]
            assert self.at["box"] in (found[1], self.at[found[1]]), "the box is not at hand"
            self.at[found[2]] = "box"
        else:
            raise AssertionError(f"nothing is said like this: {text!r}")


def test_stories_tell_only_what_is_true(told):
    checked = 0
    for story in told:
        witness = Witness()
        for text in story.removeprefix(". ").split(" . ")[:-1]:
            assert text.split()[-1] == witness.hears(text), f"{text!r} in {story!r}"
            checked += 1
    assert checked > 1000


def test_stories_are_the_same_for_one_seed_and_as_long_as_asked_for(told):
    assert stories(60, seed=3) == told
    assert stories(2, seed=4) != told[:2]
    assert {len(story.split(" ")) for story in told} == {129}
    assert [len(story.split(" ")) for story in stories(3, num_words=7)] == [7, 7, 7]
    assert stories(1, num_words=1) == ["."]


def told_worlds(stories):
    """The worlds that stories come to, in the package's own form."""
    for story in stories:
        world = {}
        for text in story.removeprefix(". ").split(" . ")[:-1]:
            yield world
            world = after(world, next(each for _, each in sentences(world) if each.text == text))


def test_sentences_have_probabilities_that_sum_to_one(told):
    for world in told_worlds(told[:10]):
        probabilities = [probability for probability, _ in sentences(world)]
        assert sum(probabilities) == pytest.approx(1)
        assert min(probabilities) > 0
        texts = [sentence.text for _, sentence in sentences(world)]
        assert len(texts) == len(set(texts))


def test_sentences_by_hand():
    """Anna is in the hall with lamp and box, and the ball lies there; Ben and Clara have not been told of."""
    world = {
        "Anna": "hall",
        "lamp": "Anna",
        "box": "Anna",
        "ball": "hall",
        "weather": "wet",
        "left": "up",
        "right": "up",
    }
    found = Counter()
    for probability, sentence in sentences(world):
        found[sentence.kind] += probability
    # Deeds weigh 55 together: three rooms to go to, two things to drop, one to take and one to put in the box, ...
    deeds = {"goes": 3, "drops": 2, "puts": 20, "takes": 20, "wears": 4, "switch": 6}
    questions = {"where 1": 2, "where 2": 16, "who": 3, "light": 6}
    wanted = {kind: weight / 55 / 4 for kind, weight in deeds.items()}
    wanted |= {kind: weight / 27 / 4 for kind, weight in questions.items()}
    assert found == pytest.approx({"news": 1 / 2, **wanted})


def test_sentences_put_things_into_a_box_that_lies_there_and_ask_far():
    world = {"Anna": "hall", "lamp": "Anna", "ball": "box", "box": "hall"}
    texts = [sentence.text for _, sentence in sentences(world)]
    assert "Anna puts the lamp in the box" in texts
    assert "Anna takes the ball" not in texts
    weights = {each.text: each.weight for _, each in sentences({**world, "box": "Anna"}) if each.kind == "where 3"}
    assert weights == {"where is the ball ? hall": 27}


def test_sentences_may_ask_again_when_something_has_happened():
    asked = " where is the box ? hall ."
    assert "where" in next_words(BEGUN + asked)
    again = BEGUN + asked + asked
    assert [possible for _, possible in possible_sentences(again)][-2:] == [True, False]
    assert all(possible for _, possible in possible_sentences(BEGUN + asked + " Anna takes the box ." + asked))


def test_next_words_by_hand():
    # Nine things can be told, each with one chance in nine; five of them begin with "the".
    ninths = {"Anna": 1 / 9, "Ben": 1 / 9, "Clara": 1 / 9, "the": 5 / 9, "it": 1 / 9}
    assert next_words(".") == pytest.approx(ninths)
    assert next_words(". Anna is in the") == pytest.approx(dict.fromkeys(ROOMS, 1 / 4))
    assert next_words(BEGUN + " where is the lamp ?") == {"hall": 1.0}
    assert next_words(BEGUN + " who has the lamp ?") == {"nobody": 1.0}
    assert next_words(BEGUN + " Anna takes the box . who has the lamp ?") == {"Anna": 1.0}
    carried = BEGUN + " Anna takes the box . Anna goes to the garden . where is the lamp ?"
    assert next_words(carried) == {"garden": 1.0}
    assert next_words(BEGUN + " Ben") == pytest.approx({"goes": 1.0})


def test_next_words_of_a_small_thing_are_the_box_as_often_as_all_rooms():
    found = next_words(". the box is in the hall . the ball is in the")
    assert found == pytest.approx({"box": 1 / 2, **dict.fromkeys(ROOMS, 1 / 8)})


def test_next_words_come_as_often_as_they_say():
    counts = Counter(story.split()[-1] for story in stories(4000, num_words=2))
    for word, probability in next_words(".").items():
        spread = math.sqrt(4000 * probability * (1 - probability))
        assert abs(counts[word] - 4000 * probability) < 4 * spread


def test_surprises_are_those_of_the_next_words(told):
    words = told[0].split()
    found = word_surprises(told[0])
    assert found.shape == (128,)
    for place in (1, 2, 5, 40, 41, 77, 128):
        probability = next_words(" ".join(words[:place]))[words[place]]
        assert found[place - 1] == pytest.approx(-math.log(probability), abs=1e-9)


@pytest.mark.parametrize(
    "sentence", ["Ben takes the box .", "Anna takes the lamp .", "where is the lamp ? cellar .", "Anna hall ."]
)
def test_possible_sentences_finds_what_is_impossible_and_goes_on_as_if_it_had_not_been_said(sentence):
    story = f"{BEGUN} {sentence} where is the box ? hall ."
    assert [possible for _, possible in possible_sentences(story)] == [True] * 4 + [False, True]
    assert possible_sentences(story)[4][0] == sentence
    without = word_surprises(story.replace(sentence + " ", ""))
    found = word_surprises(story)
    assert np.isinf(found).any()
    np.testing.assert_allclose(found[-7:], without[-7:])
    with pytest.raises(ValueError, match="No story goes on with"):
        next_words(story)


def test_next_words_say_what_may_stand_there():
    with pytest.raises(ValueError, match=r"goes on with 'it is Anna' there"):
        next_words(". it is Anna .")
    with pytest.raises(ValueError, match="a" * 20 + "' there"):
        next_words(". it is " + "a" * 100_000)


def test_possible_sentences_looks_at_what_there_is_of_the_last_sentence():
    assert possible_sentences(". it is") == [("it is", True)]
    assert possible_sentences(". it is hall") == [("it is hall", False)]
    assert possible_sentences(". it is wet .") == [("it is wet .", True)]


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Anna takes the box", "takes"),
        ("where is Anna ? hall", "where 1"),
        ("where is the lamp ? hall", "where 2"),
        ("who has the lamp ? nobody", "who"),
        ("Anna takes the box . where is the lamp ? hall", "where 3"),
        ("the left switch is up . the right switch is up . is it light ? no", "light"),
        ("the left switch is up . the right switch is up . the left switch goes down", "switch"),
        ("Anna goes to the cellar", ""),
        ("the ball is in the hall . Anna takes the ball . Anna puts the ball in the box", ""),
    ],
)
def test_word_kinds_mark_the_word_that_answers(sentence, kind):
    for end in ("", " .", " . where is Anna"):
        found = word_kinds(f"{BEGUN} {sentence}{end}")
        assert len(found) == len(f"{BEGUN} {sentence}{end}".split()) - 1
        assert found[len(f"{BEGUN} {sentence}".split()) - 2] == kind
    assert not any(word_kinds(f"{BEGUN} where is Anna ? hall hall ."))
    assert not any(word_kinds(f"{BEGUN} where is Anna ? cellar ."))


@pytest.mark.parametrize("function", [next_words, word_kinds])
def test_possible_sentences_and_their_like_refuse_what_is_no_story(unchecked, function):
    with pytest.raises(ValueError, match="begins with 'Anna is in the hall"):
        function("Anna is in the hall .")
    with pytest.raises(ValueError, match="one space between"):
        function(". it is  wet .")
