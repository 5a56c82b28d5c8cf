"""The stored models: each is what its card says, and the package knows its checksum."""

import json
import re
import sys
from functools import cache, partial
from pathlib import Path

import columns
import equinox as eqx
import jax
import language_models
import numbers_by_counting
import numpy as np
import pytest
import readings_record
import slips
import things_lines
import train_crossing
import train_date_decoder
import train_decoder
import train_docstrings
import train_dynamics
import train_encoder
import train_fine_tuning
import train_models
import train_numbers
import train_seq2seq
import train_shakespeare
import train_things_decoder
import train_things_encoder
import train_translations
import train_vision
import writing_record

import plainformer as pf
from plainformer.models.stored import load_pretrained

MODELS = Path(__file__).resolve().parents[2] / "models"
# Read once for all tests: CLDR takes seconds.
name_splits, date_splits, thing_splits = map(cache, (pf.data.name_splits, pf.data.date_splits, pf.data.thing_splits))


def card_of(name: str) -> str:
    return (MODELS / f"{name}.md").read_text(encoding="utf-8")


def rows_of(card: str) -> dict[str, list[str]]:
    """The rows of a card's table, by their first cells."""
    rows = [line.strip("| ").split(" | ") for line in card.splitlines() if line.startswith("| ")]
    return {name: [cell.strip(" |%") for cell in cells] for name, *cells in rows}


def test_train_models_finds_every_script_and_says_what_it_will_take():
    found = train_models.scripts("train_*.py")
    assert {train_decoder, train_vision} <= set(found)
    assert train_models not in found
    assert all(callable(script.train) for script in found)
    assert all(callable(script.write) for script in train_models.scripts("*_record.py"))
    assert all(figure.NUMBERS.is_file() and callable(figure.write) for figure in train_models.scripts("*_figure.py"))
    assert train_models.scripts("train_*.py", "vision") == [train_vision]
    assert set(json.loads(train_models.MINUTES.read_text("utf-8"))) <= {script.__name__ for script in found}
    said = train_models.plan(["train_a", "train_b"], {"train_a": 90, "train_c": 5}).splitlines()
    assert said[1:] == ["  train_a: 90 min", "  train_b: not timed yet"]


# --- Each is what its card says ---------------------------------------------------------------------------------


def test_decoder_has_the_loss_that_its_card_states():
    stated = float(re.search(r"(?:loss|has) (\d\.\d{3})", card_of("decoder"))[1])
    model, vocabulary = load_pretrained("decoder")
    assert vocabulary.to_json() == train_decoder.VOCABULARY.to_json()
    assert model.config == train_decoder.DECODER
    validation = vocabulary.encode(pf.data.python_reference_splits()[1])
    loss = pf.training.corpus_loss(model, pf.data.consecutive_windows(validation, model.config.context_len))
    assert loss == pytest.approx(stated, abs=0.05)  # the text is that of this Python, whose minor versions differ


@pytest.mark.parametrize("name", ["docstrings", "shakespeare"])
def test_language_models_have_the_recorded_loss_on_the_lines_shown(name):
    recorded, (model, tokenizer) = pf.data.load_record(f"{name}_losses"), load_pretrained(name)
    script, size = {"docstrings": (train_docstrings, "small"), "shakespeare": (train_shakespeare, "large")}[name]
    assert len(tokenizer) == script.VOCAB_SIZE
    assert model.config == language_models.decoder_config(script.SIZES[size], len(tokenizer))
    found = language_models.nats_per_character(model, tokenizer.encode(recorded["real"]), len(recorded["real"]))
    assert found == pytest.approx(recorded["real loss"], abs=0.002)


@pytest.mark.parametrize(("name", "number"), [("seq2seq", 100), ("seq2seq_1", 20), ("seq2seq_2", 20)])
def test_dates_are_translated_as_recorded(name, number):
    pairs = date_splits().held_out_language[:number]
    model, vocabulary = load_pretrained(name)
    assert model.config == train_seq2seq.seq2seq_config(vocabulary)
    mistakes = pf.data.load_record("translations")[name]["held_out_language"]
    found = train_translations.translated(model, vocabulary, pairs, batch_size=number)
    same = [text == mistakes.get(str(n), pair.target) for n, (text, pair) in enumerate(zip(found, pairs, strict=True))]
    assert sum(same) >= number - 1  # one may hang on the last digits of a logit


def test_numbers_are_translated_as_the_card_states():
    splits = pf.data.number_splits()
    model, vocabulary = load_pretrained("numbers")
    length = train_numbers.LENGTH
    assert model.config == train_seq2seq.seq2seq_config(vocabulary, context_len=length, source_len=length)
    counting = numbers_by_counting.CountingTranslator(splits.training)
    assert counting.words("vierunddreißigtausendachthundert") == ["four", "thirty", "thousand", "eight", "hundred"]
    assert counting.translate("vierunddreißigtausendachthundert") == "thirty-four thousand, eight hundred"
    row = re.search(r"\| new combination \| (\S+)% \| (\S+) % .*? \| (\S+)% \|", card_of("numbers"))
    of_stored, of_seeds, of_counting = map(float, row.groups())
    share = train_seq2seq.match(model, vocabulary, splits.new_combination)
    assert 100 * share == pytest.approx(of_stored, abs=0.41)  # two texts of 500
    assert min(of_stored, of_seeds) > of_counting + 3


def test_date_decoder_answers_as_its_card_states():
    model, vocabulary = load_pretrained("date_decoder")
    assert model.config == train_date_decoder.one_text_config(vocabulary)
    stated = float(re.search(r"held-out languages \| (\S+)% ", card_of("date_decoder"))[1])
    share = train_date_decoder.answers_right(model, vocabulary, date_splits().held_out_language)
    assert 100 * share == pytest.approx(stated, abs=0.5)


def test_things_decoder_copies_as_its_card_states():
    card = card_of("things_decoder")
    rows = rows_of(card)
    model, vocabulary = load_pretrained("things_decoder")
    assert model.config == train_things_decoder.DECODER
    assert vocabulary.to_json() == things_lines.VOCABULARY.to_json()
    lines = train_things_decoder.lines_to_judge(thing_splits().test)
    texts = [", ".join(line) for line in lines]
    found = train_things_decoder.by_name(train_things_decoder.surprise_by_letter(model, texts), lines)
    np.testing.assert_allclose(found, [float(cell) for cell in rows["decoder, seed 0"]], atol=0.02)
    seeds = [[float(cell) for cell in rows[f"decoder, seed {seed}"]] for seed in things_lines.SEEDS]
    assert max(max(each[1:]) for each in seeds) < 2 < 2.4 < min(float(cell) for cell in rows["10-gram"])
    first, again = (re.findall(r"\d\.\d\d", part)[0] for part in card[card.index("**Copying") :].split(";")[:2])
    copied = train_things_decoder.first_and_again(model, train_things_decoder.invented_words(200))
    np.testing.assert_allclose(copied, (float(first), float(again)), atol=0.02)


def test_heads_that_one_word_needs_are_those_that_a_hundred_need():
    expected = pf.data.load_record("readings")["copying"]
    found = readings_record.Copying(*load_pretrained("things_decoder"), num_words=8).measure()
    assert (*found["earlier"], *found["copier"]) == (*expected["earlier"], *expected["copier"])
    assert found["word"] == expected["word"]
    np.testing.assert_allclose(found["weights"], expected["weights"], atol=0.01)
    for name in ("first", "again", "shuffled", "without_earlier", "without_copier", "without_another"):
        assert found[name] == pytest.approx(expected[name], abs=1), name  # eight words of a hundred


def test_things_encoder_guesses_as_its_card_states():
    rows = rows_of(card_of("things_encoder"))
    model, vocabulary = load_pretrained("things_encoder")
    assert model.config == train_things_encoder.ENCODER
    assert vocabulary.to_json() == things_lines.VOCABULARY.to_json()
    asked = things_lines.questions(thing_splits().test, train_things_encoder.NUM_QUESTIONS)
    nats, is_right = train_things_encoder.surprises(model, asked)
    # The names are those of this Babel, whose versions differ a little.
    assert nats.mean() == pytest.approx(float(rows["encoder, seed 0"][0]), abs=0.05)
    assert 100 * is_right.mean() == pytest.approx(float(rows["encoder, seed 0"][1]), abs=2)
    of_seeds = [float(rows[f"encoder, seed {seed}"][0]) for seed in things_lines.SEEDS]
    votes, alone = (float(rows[name][0]) for name in ("the same with votes", "6-gram, the name alone"))
    assert abs(votes - np.mean(of_seeds)) < 2 * (max(of_seeds) - min(of_seeds))  # level, as the chapter says
    assert alone > max(of_seeds) + 1


def test_encoder_guesses_hidden_letters_as_its_card_states():
    card = card_of("encoder")
    stated_loss = float(re.findall(r"loss\s(\d\.\d{3})\snats per selected", card)[-1])
    (stated_share,) = map(float, re.findall(r"(0\.\d{3}) of them", card))
    model, vocabulary = load_pretrained("encoder")
    assert vocabulary.to_json() == train_encoder.VOCABULARY.to_json()
    assert model.config == train_encoder.ENCODER
    loss, share = train_encoder.masked_results(model, name_splits().test)
    # The names are those of this Babel, whose versions differ a little.
    assert loss == pytest.approx(stated_loss, abs=0.05)
    assert share == pytest.approx(stated_share, abs=0.02)


def test_vision_transformer_has_the_accuracy_that_its_card_states():
    card = (MODELS / "vision.md").read_text(encoding="utf-8")
    (stated,) = re.findall(r"Test accuracy (\d\d\.\d\d)%", card)
    training, test = pf.data.digits()
    model, tokenizer = load_pretrained("vision")
    assert tokenizer is None
    assert model.config == train_vision.VISION
    accuracy = train_vision.vision_accuracy(model, test)
    assert 100 * accuracy == pytest.approx(float(stated), abs=0.3)  # one image more or fewer, on another machine
    assert accuracy > 0.98
    images, labels, *_ = train_vision.shifted_batches(training, batch_size=7)(0)
    assert images.shape == (7, 8, 8, 1)
    assert labels.shape == (7,)


def test_crossing_transformer_answers_as_its_card_states():
    card = (MODELS / "vision_crossing.md").read_text(encoding="utf-8")
    stated = re.search(r"transformer, seed 0 \| (\d\d\.\d\d)% \| (\d\d\.\d\d)%", card)
    training, test = pf.data.digits()
    model, tokenizer = load_pretrained("vision_crossing")
    assert tokenizer is None
    assert model.config == train_crossing.CROSSING
    for pictures, share in zip(train_crossing.pictures_of(test), stated.groups(), strict=True):
        accuracy = train_crossing.crossing_accuracy(model, pictures)
        assert 100 * accuracy == pytest.approx(float(share), abs=0.11)  # two pictures more or fewer, on another machine
        assert accuracy > 0.97
    images, labels, *_ = train_crossing.crossing_batches(training, seed=0)(0)
    assert images.shape == (train_crossing.BATCH_SIZE, 32, 32, 1)
    assert labels.shape == (train_crossing.BATCH_SIZE,)


def test_every_fifth_digit_of_each_class_is_kept_to_choose_by():
    training = pf.data.digits().training
    rest, fold = train_vision.fold_of(training)
    assert len(rest.labels) + len(fold.labels) == len(training.labels)
    of_class, kept = (np.bincount(np.asarray(each.labels)) for each in (training, fold))
    assert (kept == of_class // 5).all()


def test_the_encoder_finds_slips_as_its_card_states():
    card = card_of("encoder")
    number, _, _, of_some, of_counting = re.findall(r"[\d,.]+(?=%| of them one)", card[card.index("**Slips.**") :])
    model, _ = load_pretrained("encoder")
    splits = name_splits()
    wrong = train_encoder.one_slip_each(splits.test, splits.training)
    assert len(wrong) == int(number.replace(",", ""))
    assert all(len(line[0]) >= 5 and line[0][place].isalpha() for line, _, place in wrong)
    texts = [name.text for name in splits.training]
    found = slips.slips_found(partial(train_encoder.surprise_by_encoder, model), wrong[::6], texts)
    assert 100 * found == pytest.approx(float(of_some), abs=0.5)
    assert float(of_counting) > float(of_some) + 5


def test_a_slip_is_another_letter_and_is_found_by_whoever_knows_the_name():
    asked = [(["Norge", "Norwegen"], 1, place) for place in range(8)]
    wrong = slips.with_slips(asked, ["Norge"])
    for (_, _, place), (line, number, at) in zip(asked, wrong, strict=True):
        assert (line[0], number, at) == ("Norge", 1, place)
        assert [n for n in range(8) if line[1][n].lower() != "norwegen"[n]] == [place]

    def knows(places):
        return np.array([line[number][n].lower() != "norwegen"[n] for line, number, n in places], float)

    names = ["Norwegen", "".join(line[1] for line, *_ in wrong)]
    assert slips.slips_found(lambda places: 9 * knows(places), wrong, names) == 1
    assert slips.slips_found(lambda places: -9 * knows(places), wrong, names) == 0


def test_a_letter_that_is_rare_surprises_but_is_seldom_a_slip():
    wrong = [(["exit"], 0, 3)]  # was exix: the x is as surprising as the t, but slips are drawn as often as letters
    assert slips.slips_found(lambda places: np.array([0, 3.1, 0, 3]), wrong, ["tttt", "eix"]) == 1
    assert slips.slips_found(lambda places: np.array([0, 3.1, 0, 3]), wrong, ["teix"]) == 0
    assert slips.slips_found(lambda places: np.array([0, 3, 9, 3.1]), [(["ex-t"], 0, 3)], ["text"]) == 1


def test_layers_in_columns_are_those_of_the_package():
    config = train_dynamics.TrajectoryConfig(num_blocks=2, num_layers=2, num_layers_alone=3)
    windows = jax.random.normal(jax.random.key(1), (5, 3, 3))
    for make in train_dynamics.KINDS.values():
        model = make(config, key=jax.random.key(2))
        found = columns.applied(model, windows.transpose(2, 1, 0)).transpose(2, 1, 0)
        np.testing.assert_allclose(found, model(windows), atol=1e-5)


def test_the_dynamics_are_stored_as_their_runs_say():
    for name, run in train_dynamics.RUNS.items():
        models, tokenizer = load_pretrained(name)
        assert (models.config, tokenizer) == (run.config, None)


def test_what_the_decoder_wrote_is_as_surprising_as_recorded():
    """The first four texts of each way, with the last key."""
    recorded, (model, vocabulary) = pf.data.load_record("writing"), load_pretrained("decoder")
    start, beginnings = writing_record.START, recorded["beginnings"]["letters"]
    for name, way in recorded["letters"].items():
        texts = [
            [vocabulary.special["<other>"] if letter == "◦" else vocabulary.encode(letter)[0] for letter in text]
            for text in way["texts"][-1][:4]
        ]
        ids = np.array([[*begun, *text] for begun, text in zip(beginnings, texts, strict=False)])
        found = writing_record.surprises(model, ids, start) / writing_record.LENGTH
        np.testing.assert_allclose(found, way["surprise"][-1][:4], atol=0.003, err_msg=name)
        if name == "greedy":
            logits = np.asarray(eqx.filter_jit(model)(ids[:, :-1]))[:, start - 1 :]
            chosen = np.take_along_axis(logits, ids[:, start:, None], axis=2)[..., 0]
            assert (chosen > logits.max(axis=2) - 0.01).all()


def test_fine_tuning_reaches_what_was_recorded():
    """One of the cases over again: the first draw of five labels."""
    recorded, splits = pf.data.load_record("fine_tuning"), name_splits()
    languages = recorded["languages"]
    learning, test = (train_fine_tuning.Names(part, languages) for part in (splits.training, splits.test))
    start = train_fine_tuning.classifier(load_pretrained("encoder")[0].encoder, len(languages), 0)
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
        model = train_fine_tuning.fine_tuned(start, learning, 5, 0, train_fine_tuning.RATES["pre-trained"][5])
    found = 100 * np.mean(train_fine_tuning.answers(model, test) == test.labels)
    assert found == pytest.approx(recorded["accuracy"]["pre-trained"]["5"][0], abs=2)


def test_what_people_wrote_is_in_the_text_that_was_held_out():
    recorded, writer = pf.data.load_record("writing"), writing_record.decoder_of_letters()
    if recorded["python"] == f"{sys.version_info.major}.{sys.version_info.minor}":  # the text depends on it
        assert recorded["beginnings"]["letters"] == writer.beginnings()
        people, texts = recorded["letters"]["people"], [writer.text(text[writer.start :]) for text in writer.real()]
        assert people["texts"] == [texts[:4]]
        assert people["repeated"] == [[pytest.approx(writing_record.repeated(text), abs=1e-4) for text in texts]]
        assert writer.known_words(texts) == pytest.approx(people["known words"][0], abs=1e-4)
