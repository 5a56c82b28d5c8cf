"""The recorded walk from 2017 to today: the card, the costs, and what its script trains."""

import train_walk
from book import ROOT

import plainformer as pf
from plainformer.models.accounting import cache_bytes

RECORDED = pf.data.load_record("walk")


def test_card_says_what_was_recorded():
    card = (ROOT / "models" / "walk.md").read_text(encoding="utf-8")
    assert train_walk.card(RECORDED) == card


def test_each_machine_has_one_change_more_than_the_one_before():
    seen = [train_walk.config_of(name) for name in train_walk.NAMES]
    assert list(RECORDED["machines"]) == train_walk.NAMES
    assert len({repr(config) for config in seen}) == len(seen)
    for before, after, name in zip(seen, seen[1:], train_walk.NAMES[1:], strict=False):
        pairs = [(one, other) for one, other in ((before, after), (before.stack, after.stack))]
        changed = {
            field
            for one, other in pairs
            for field in one.__dataclass_fields__
            if field != "stack" and getattr(one, field) != getattr(other, field)
        }
        assert changed == set(train_walk.CHANGES[name])


def test_recorded_costs_are_those_of_the_models():
    for name, each in RECORDED["machines"].items():
        model = pf.Decoder(train_walk.config_of(name), key=train_walk.jax.random.key(0))
        assert pf.count_parameters(model) == each["parameters"]
        kept = model.make_cache(train_walk.LENGTH)
        assert sum(part.keys.nbytes + part.values.nbytes for part in kept) == each["cache"]
        assert each["cache"] == cache_bytes(model.config.stack, train_walk.LENGTH)
        assert each["read"] == train_walk.read_bytes(model.config.stack) <= each["cache"]


def test_windows_in_turn_look_at_a_part_of_what_is_kept():
    stack = train_walk.config_of("windows in turn").stack
    assert stack.kinds == ("window", "full", "window", "full")
    assert train_walk.read_bytes(stack) == cache_bytes(stack, train_walk.LENGTH) * (32 + 128) // (2 * 128)


def test_a_machine_learns_and_begins_anew_with_each_seed():
    windows = train_walk.np.random.default_rng(0).integers(7, size=(50, train_walk.LENGTH + 1))
    config = train_walk.config_of("sinks", width=16, vocab_size=7)
    batches = train_walk.batches_of(windows, 0)
    model, milliseconds = train_walk.after_training(config, batches, 0.01, 2, 0)
    other, _ = train_walk.after_training(config, batches, 0.01, 2, 1)
    assert milliseconds > 0
    sinks = [each.stack.blocks[0].attention.kernel.sinks for each in (model, other)]
    assert (sinks[0] != 0).all()
    assert (sinks[0] != sinks[1]).any()
