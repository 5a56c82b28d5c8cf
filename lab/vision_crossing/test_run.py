"""The transformer of crossings answers as its card states, and is ahead of its opponents."""

import re

import pytest

import plainformer as pf
from lab.records import LAB
from lab.vision_crossing import run as vision_crossing_run
from plainformer.models.stored import load_pretrained


def test_crossing_transformer_answers_as_its_card_states():
    card = (LAB / "vision_crossing" / "card.md").read_text(encoding="utf-8")
    stated = re.search(r"transformer, seed 0 \| (\d\d\.\d\d)% \| (\d\d\.\d\d)%", card)
    training, test = pf.data.digits()
    model, tokenizer = load_pretrained("vision_crossing")
    assert tokenizer is None
    assert model.config == vision_crossing_run.CROSSING
    for pictures, share in zip(vision_crossing_run.pictures_of(test), stated.groups(), strict=True):
        accuracy = vision_crossing_run.crossing_accuracy(model, pictures)
        assert 100 * accuracy == pytest.approx(float(share), abs=0.11)  # two pictures more or fewer, on another machine
        assert accuracy > 0.97
    images, labels, *_ = vision_crossing_run.crossing_batches(training, seed=0)(0)
    assert images.shape == (vision_crossing_run.BATCH_SIZE, 32, 32, 1)
    assert labels.shape == (vision_crossing_run.BATCH_SIZE,)


def test_crossing_transformer_is_ahead_of_its_opponents():
    card = (LAB / "vision_crossing" / "card.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*) \| (\d+\.\d\d)% \| (\d+\.\d\d)% \|$", card, flags=re.MULTILINE)
    shares = {name: (float(asked), float(held_out)) for name, asked, held_out in rows}
    ours = [share for name, share in shares.items() if name.startswith("transformer, seed")]
    theirs = [share for name, share in shares.items() if name.startswith("convolutional network, seed")]
    theirs.append(shares["support-vector machine on all pixels"])
    assert len(ours) == len(vision_crossing_run.SEEDS) == len(theirs) - 1 == 3
    for kind, mean in enumerate(shares["transformer, mean"]):
        assert sum(share[kind] for share in ours) / 3 == pytest.approx(mean, abs=0.011)
        assert min(share[kind] for share in ours) > max(share[kind] for share in theirs)
    # Crossings that training never asked for: ahead by more than twice the spread of seeds.
    spread = max(share[1] for share in ours) - min(share[1] for share in ours)
    assert shares["transformer, mean"][1] - max(share[1] for share in theirs) > 2 * spread
    others = pf.data.load_record("crossing_opponents")
    runs = [run for several in others["table"].values() for run in several] + [*others["turned"].values()]
    assert max(run["held_out"] for run in runs) < min(share[1] for share in ours) / 100 - 0.1
    assert min(run["asked"] for run in runs) > 0.97
