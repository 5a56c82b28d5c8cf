"""The stored models: each is what its card says, and the package knows its checksum."""

import re
from pathlib import Path

import checksums
import pytest
import train_decoder
import train_encoder
import train_models
import train_seq2seq
import train_vision

import plainformer as pf
from plainformer.models.stored import SHA256, load_pretrained

MODELS = Path(__file__).resolve().parents[2] / "models"


def test_models_are_small():
    assert sum(file.stat().st_size for file in MODELS.iterdir()) < 10_000_000


def test_the_package_knows_the_checksum_of_every_model(tmp_path):
    assert checksums.checksums() == SHA256, "run tools/models/checksums.py"
    stored = (MODELS.parent / "src" / "plainformer" / "models" / "stored.py").read_text(encoding="utf-8")
    copy = tmp_path / "stored.py"
    copy.write_text(stored.replace(SHA256["decoder"], "0" * 64).replace(SHA256["vision"], "1" * 64), encoding="utf-8")
    checksums.write(copy)
    assert copy.read_text(encoding="utf-8") == stored


def test_train_models_finds_every_script():
    found = train_models.scripts("train_*.py")
    assert found == [train_decoder, train_encoder, train_seq2seq, train_vision]
    assert all(callable(script.train) for script in found)
    figures = train_models.scripts("*_figure.py")
    assert [figure.NUMBERS.stem for figure in figures] == [
        "masking",
        "outcomes",
        "patches",
        "sampling",
        "surprise",
        "translation",
    ]
    assert all(callable(figure.write) for figure in figures)


def test_decoder_has_the_loss_that_its_card_states():
    card = (MODELS / "decoder.md").read_text(encoding="utf-8")
    stated, of_five_gram, of_ten_gram = (float(n) for n in re.findall(r"(?:loss|has|smoothing) (\d\.\d{3})", card))
    model, vocabulary = load_pretrained("decoder")
    assert vocabulary.to_json() == train_decoder.VOCABULARY.to_json()
    training, validation = (vocabulary.encode(text) for text in pf.data.python_reference_splits())
    assert model.config == train_decoder.DECODER
    loss = pf.training.corpus_loss(model, pf.data.consecutive_windows(validation, model.config.context_len))
    counted = pf.training.NgramModel(training, 5, model.config.vocab_size).loss(validation)
    # The text is that of this Python, whose minor versions differ a little.
    assert loss == pytest.approx(stated, abs=0.05)
    assert counted == pytest.approx(of_five_gram, abs=0.05)
    modified = pf.training.NgramModel(training, 10, model.config.vocab_size, discount=None).loss(validation)
    assert modified == pytest.approx(of_ten_gram, abs=0.05)
    assert modified < loss < counted


def test_encoder_guesses_hidden_letters_as_its_card_states():
    card = (MODELS / "encoder.md").read_text(encoding="utf-8")
    stated_loss = float(re.findall(r"loss\s(\d\.\d{3})\snats per selected", card)[-1])
    (stated_share,) = map(float, re.findall(r"(0\.\d{3}) of them", card))
    model, vocabulary = load_pretrained("encoder")
    assert vocabulary.to_json() == train_encoder.VOCABULARY.to_json()
    assert model.config == train_encoder.ENCODER
    loss, share = train_encoder.masked_results(model, pf.data.name_splits().test)
    # The names are those of this Babel, whose versions differ a little.
    assert loss == pytest.approx(stated_loss, abs=0.05)
    assert share == pytest.approx(stated_share, abs=0.02)


def test_encoder_was_trained_on_lines_of_single_languages():
    names = [name for name in pf.data.name_splits().training if name.language in ("fi", "pl")]
    corrupted, tokens, is_selected, is_token = train_encoder.masked_batches(names)(0)
    assert tokens.shape == (train_encoder.BATCH_SIZE, train_encoder.ENCODER.context_len)
    assert bool(is_token.all())
    assert 0.2 < float(is_selected.mean()) < 0.4
    assert bool((corrupted == tokens)[~is_selected].all())
    known = {language: {n.text for n in names if n.language == language} for language in ("fi", "pl")}
    for line in tokens:
        *whole, _ = train_encoder.VOCABULARY.decode(line).split(", ")  # the last one may be cut
        assert any(set(whole) <= texts for texts in known.values())


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
    images, labels = train_vision.shifted_batches(training, batch_size=7)(0)
    assert images.shape == (7, 8, 8, 1)
    assert labels.shape == (7,)


@pytest.mark.parametrize("name", train_seq2seq.NAMES)
def test_seq2seq_translates_as_its_card_states(name):
    card = (MODELS / "seq2seq.md").read_text(encoding="utf-8")
    found = re.search(rf"`{name}\.safetensors` \| (\d+\.\d\d)% \| (\d+\.\d\d)%", card)
    splits = pf.data.date_splits()
    model, vocabulary = load_pretrained(name)
    assert model.config == train_seq2seq.seq2seq_config(vocabulary)
    for part, stated in zip(splits[1:], found.groups(), strict=True):
        # The texts are those of this Babel, whose versions differ a little.
        match = train_seq2seq.date_match(model, vocabulary, part)
        assert match == pytest.approx(float(stated) / 100, abs=0.005)


def test_seq2seq_reaches_the_mean_that_its_card_states():
    card = (MODELS / "seq2seq.md").read_text(encoding="utf-8")
    each = [float(stated) for stated in re.findall(r"safetensors` \| (\d+\.\d\d)%", card)]
    (mean,) = re.findall(r"held-out years (\d+\.\d\d)% in the mean", card)
    assert len(each) == len(train_seq2seq.NAMES) == 3
    assert sum(each) / 3 == pytest.approx(float(mean), abs=0.006)
    assert float(mean) >= 99
