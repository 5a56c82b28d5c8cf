"""The transformer of crossings answers as recorded, and is ahead of its opponents."""

import pytest

import plainformer as pf
from lab.vision_crossing import run as vision_crossing_run
from plainformer.models.stored import load_pretrained


def test_crossing_transformer_answers_as_recorded():
    recorded = pf.data.load_record("vision_crossing")["transformer"][0]
    training, test = pf.data.digits()
    model, tokenizer = load_pretrained("vision_crossing")
    assert tokenizer is None
    assert model.config == vision_crossing_run.CROSSING
    for pictures, kind in zip(vision_crossing_run.pictures_of(test), vision_crossing_run.KINDS, strict=True):
        accuracy = vision_crossing_run.crossing_accuracy(model, pictures)
        assert accuracy == pytest.approx(recorded[kind], abs=0.0011)  # two pictures more or fewer, on another machine
        assert accuracy > 0.97
    images, labels, *_ = vision_crossing_run.crossing_batches(training, seed=0)(0)
    assert images.shape == (vision_crossing_run.BATCH_SIZE, 32, 32, 1)
    assert labels.shape == (vision_crossing_run.BATCH_SIZE,)


def test_crossing_transformer_is_ahead_of_its_opponents():
    recorded = pf.data.load_record("vision_crossing")
    ours, theirs = recorded["transformer"], [*recorded["convolution"], recorded["pixels"]]
    assert len(ours) == len(vision_crossing_run.SEEDS) == len(theirs) - 1 == 3
    for kind in vision_crossing_run.KINDS:
        assert min(share[kind] for share in ours) > max(share[kind] for share in theirs)
    # Crossings that training never asked for: ahead by more than twice the spread of seeds.
    held_out = [share["held_out"] for share in ours]
    ahead = vision_crossing_run.mean_of(ours)["held_out"] - max(share["held_out"] for share in theirs)
    assert ahead > 2 * (max(held_out) - min(held_out))
    others = pf.data.load_record("crossing_opponents")
    runs = [run for kind in ("table", "turned") for several in others[kind].values() for run in several]
    assert max(run["held_out"] for run in runs) < min(held_out) - 0.1
    assert min(run["asked"] for run in runs) > 0.97


def test_the_rate_of_the_transformer_lies_inside_its_grid():
    found = pf.data.load_record("vision_crossing")["rates on the fold"]
    assert list(found) == [f"{rate:g}" for rate in vision_crossing_run.RATES]
    smallest, *_, largest = vision_crossing_run.RATES
    taken = found[f"{vision_crossing_run.TRAINING.learning_rate:g}"]["asked"]
    assert taken > found[f"{smallest:g}"]["asked"] + 0.2 > found[f"{largest:g}"]["asked"] + 0.2
    assert taken > max(each["asked"] for each in found.values()) - 0.01
