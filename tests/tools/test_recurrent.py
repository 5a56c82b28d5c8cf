"""The models that chapter 13 compares: the record, its card, and what the chapter says of it."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import recurrent_card
import recurrent_runs
import train_recurrent
from recurrent_runs import COPY, KINDS

import plainformer as pf

MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture(scope="module")
def recorded() -> dict:
    return pf.data.load_record("recurrent")


@pytest.fixture(scope="module")
def chapter() -> str:
    (path,) = (MODELS.parent / "chapters").glob("*_relations.md")
    return " ".join(path.read_text(encoding="utf-8").split())


@pytest.fixture
def few_steps():
    """For the first steps of a run: to compile them well would take longer than to make them."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def reached(recorded, name: str, kind, number: str = "judge") -> list[float]:
    return recurrent_card.runs_of(recorded["runs"][name], kind, number)


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("kind", KINDS)
def test_models_start_to_learn_as_their_stored_losses_say(kind, recorded):
    """The first steps of a run over again: warm-up, batches and weights are those that were written down."""
    task = COPY[10]
    (run,) = (run for run in recorded["runs"][task.name] if (run["kind"], run["seed"]) == (kind, 1))
    assert run["rate"] == recorded["rates"][task.name][kind]
    settings, losses = recurrent_runs.settings(run["num_steps"], run["rate"], 1), []

    def note(metrics, step):
        losses.append(metrics["loss"])
        if step == 5:
            raise StopIteration

    model, batches = recurrent_runs.new_model(kind, task, 1), recurrent_runs.batches(task, 1)
    with jax.numpy_dtype_promotion("standard"), pytest.raises(StopIteration):  # optax counts in integers
        pf.fit(model, pf.training.next_token_loss, batches, settings, callbacks=[note], progress=False)
    np.testing.assert_allclose(losses, run["first"], atol=0.005)


def test_card_and_chapter_say_what_was_recorded(recorded):
    card = (MODELS / "recurrent.md").read_text(encoding="utf-8")
    (path,) = (MODELS.parent / "chapters").glob("*_relations.md")
    assert train_recurrent.card(recorded) == card
    for table in (recurrent_card.text_table(recorded), recurrent_card.copy_table(recorded)):
        assert table in card
        assert table in path.read_text(encoding="utf-8")


def test_models_are_of_equal_size(recorded):
    for name, counts in recorded["parameters"].items():
        assert max(counts.values()) < 1.02 * min(counts.values()), name


def test_every_rate_on_text_has_worse_ones_on_both_sides(recorded):
    for kind, tried in recorded["tried"].items():
        rates, losses = zip(*tried, strict=True)
        best = losses.index(min(losses))
        assert rates[best] == recorded["rates"]["text"][kind]
        assert 0 < best < len(rates) - 1
        assert np.allclose(np.diff(np.log(rates)), np.log(1.6), atol=0.07)


def test_descend_stops_below_both_neighbours():
    seen = []

    def score(rate):
        seen.append(rate)
        return abs(rate - 5)

    assert train_recurrent.descend((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), 2.0, score) == 5
    assert set(seen) == {1, 2, 3, 4, 5, 6}


def test_gated_linear_attention_writes_as_it_reads():
    model = recurrent_runs.new_model("gated", COPY[10], 0)
    ids = jnp.asarray([3, 1, 4, 1, 5])
    states = [block.attention.start() for block in model.stack.blocks]
    rows = []
    for n in range(5):
        row, states = train_recurrent.extend_gated(model, ids[n : n + 1], states, jnp.asarray([n]))
        rows.append(model.logits(row))
    np.testing.assert_allclose(jnp.concatenate(rows), model(ids), atol=1e-5)


def test_the_gated_model_differs_from_the_decoder_in_its_attention_alone():
    gated, modern = (recurrent_runs.new_model(kind, COPY[10], 0) for kind in ("gated", "modern"))
    assert type(gated.stack.blocks[0].feed_forward) is type(modern.stack.blocks[0].feed_forward)
    assert gated.stack.scheme == modern.stack.scheme
    assert not hasattr(gated.stack.blocks[0].attention, "kernel")
    assert eqx.tree_equal(*(jax.tree.map(jnp.shape, each.embedding) for each in (gated, modern)))


def test_copying_asks_for_the_symbols_after_the_mark():
    inputs, targets, is_due = recurrent_runs.copy_texts(3, (0,), 2)
    assert inputs.shape == targets.shape == (2, 19)
    symbols = inputs[:, : recurrent_runs.COPIED]
    np.testing.assert_array_equal(targets[is_due].reshape(2, -1), symbols)
    assert (inputs[:, 11] == recurrent_runs.MARK).all()
    assert (inputs[:, 8:11] == recurrent_runs.BLANK).all()


def test_the_chapter_says_what_a_short_training_found(recorded, chapter):
    mean = {kind: np.mean(reached(recorded, "text", kind)) for kind in KINDS}
    assert all(len(reached(recorded, "text", kind)) == 3 for kind in KINDS)
    assert "After 800 steps every other kind is ahead of the decoder of 2019" in chapter
    oldest = min(reached(recorded, "text", "classic"))
    assert all(max(reached(recorded, "text", kind)) < oldest for kind in KINDS[1:])
    assert f"whose block is worth {mean['classic'] - mean['modern']:.2f} here" in chapter
    in_time = {kind: reached(recorded, "equal time", kind)[0] for kind in KINDS}
    first = f"by {mean['modern'] - mean['gru']:.2f}, and by {in_time['modern'] - in_time['gru']:.2f} in equal time"
    assert f"only the GRU is, {first}; the others lie within 0.02 of it" in chapter
    assert all(abs(mean[kind] - mean["modern"]) < 0.02 for kind in ("gated", "rnn", "lstm"))


def test_the_chapter_says_what_changes_after_a_long_training(recorded, chapter):
    long = {kind: reached(recorded, "long", kind)[0] for kind in KINDS}
    (lower,) = recorded["runs"]["long, lower rate"]
    assert f"it reaches {long['classic']:.2f}" in chapter
    at_lower = f"at {lower['rate']:g} the other decoder reaches {lower['judge']:.2f} in place of {long['modern']:.2f}"
    assert at_lower in chapter
    other = {kind: reached(recorded, "long", kind, "choose")[0] for kind in KINDS}
    *near, plain = sorted(other.values())
    assert f"five kinds lie between {near[0]:.2f} and {near[-1]:.2f}" in chapter
    assert f"the plain network is at {plain:.2f}" in chapter
    assert other["rnn"] == plain
    for losses in (long, other):
        assert min(losses, key=losses.get) == "gru"


def test_the_chapter_says_what_other_widths_and_another_text_found(recorded, chapter):
    runs = recorded["runs"]
    assert [run["kind"] for run in runs["widths"]] == ["modern", "gru"] * 2
    leads = [
        f"{first['judge'] - second['judge']:.2f}" for first, second in zip(*[iter(runs["widths"])] * 2, strict=True)
    ]
    assert leads == ["0.04", "0.04"]
    assert "at half and twice the width by 0.04" in chapter
    on_plays = {run["kind"]: run["judge"] for run in runs["shakespeare"]}
    assert f"on Shakespeare by {on_plays['modern'] - on_plays['gru']:.2f}" in chapter


def test_the_chapter_says_what_was_copied(recorded, chapter):
    for delay in (10, 80):
        for kind in ("classic", "modern", "gated"):
            assert min(reached(recorded, f"copy {delay}", kind, "share")) > 0.99
        assert reached(recorded, f"copy {delay} long", "gru", "share")[0] > 0.99
    assert reached(recorded, "copy 10 long", "lstm", "share")[0] > 0.99
    long = {run["kind"]: run for run in recorded["runs"]["copy 80 long"]}
    assert "the plain network has only begun, and the loss of the LSTM has not moved" in chapter
    slow = [f"{100 * share:.0f}" for share in recorded["slow start"]]
    assert f"it has {slow[0]}, {slow[1]} and {slow[2]} % after 600 steps" in chapter
    assert long["rnn"]["judge"] < 1.9
    assert long["lstm"]["judge"] == pytest.approx(np.log(8), abs=0.002)


def test_the_chapter_says_what_steps_and_tokens_cost(recorded, chapter):
    costs = recorded["costs"]
    short, long = ({kind: f"{each['step'][place]:.0f}" for kind, each in costs.items()} for place in (0, 1))
    assert f"took the plain network {short['rnn']} milliseconds, today's decoder {short['modern']}" in chapter
    assert f"gated linear attention {short['gated']}. In windows of 1,024 the last took {long['gated']}" in chapter
    assert (
        f"the recurrent networks {long['rnn']} to {long['gru']}, and the decoder, block by block, {long['modern']}"
        in chapter
    )
    token = {kind: f"{each['token'][1]:.2f}" for kind, each in costs.items()}
    assert (
        f"took the decoder {token['modern']} milliseconds, from its cache, gated linear attention {token['gated']}"
        in chapter
    )
    assert token["rnn"] == token["lstm"] == token["gru"] == "0.01"


def test_the_chapter_says_how_far_trained_models_reach(recorded, chapter):
    far = {run["kind"]: run["reach"][48] for run in recorded["runs"]["text"] if "reach" in run and run["seed"] == 0}
    assert "to 0.03 or less at 48 steps back, and the others' to 0.004 or less" in chapter
    assert max(far["classic"], far["modern"]) < 0.0305
    assert max(far[kind] for kind in KINDS[2:]) < 0.004
