"""Recorded trainings begin over again as they were recorded, and what their scripts train on and with is what they say.

The first steps of a run show its weights, its batches, its loss and its optimiser; one run of each script is enough.
"""

import dataclasses
import itertools

import caches_record
import delta_runs
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import page_record
import post_norm_runs
import pytest
import recurrent_runs
import train_answering
import train_blocks
import train_colours
import train_delta
import train_drafts
import train_dynamics
import train_experts
import train_first_decoder
import train_latent
import train_long
import train_positions
import train_post_norm
import train_preferring
import train_recipes_training
import train_recurrent
import train_scaling_laws
import train_verbs_last
import train_walk

import plainformer as pf
from plainformer.attention import quantise_groups
from plainformer.models.accounting import cache_bytes

record = pf.data.load_record
recipes = train_recipes_training


@pytest.fixture
def few_steps():
    """For the first steps of a run: to compile them well would take longer than to make them."""
    jax.config.update("jax_disable_most_optimizations", True)
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
        yield
    jax.config.update("jax_disable_most_optimizations", False)


def of_positions():
    stored, run = record("positions"), train_positions.Run("learned", 8, text="random", seed=1)
    (found,) = (each for each in stored["runs"] if dataclasses.asdict(run).items() <= each.items())
    return train_positions.trained(run, len(found["losses"]))[1], found["losses"], True


def of_the_first_decoder():
    stored, text = record("first_decoder"), train_first_decoder.VOCABULARY.encode(pf.data.python_reference_splits()[0])
    _, metrics = train_first_decoder.learn_small(text, num_steps=2)
    return [each["loss"] for each in metrics], stored["losses"][:2], len(text) == stored["training characters"]


def of_the_page():
    name = page_record.SHOWN[-1]
    return page_record.learned(name, 0, num_steps=3)[0], record("page")["changes"][name][0]["first"], True


def of_twelve_blocks():
    stored, setting = record("blocks"), train_blocks.Setting("post", 3e-3, 0, True)
    (run,) = (run for run in stored["runs"] if {**run, **setting._asdict()} == run)
    text, _ = train_blocks.as_bytes()
    _, (curve,) = train_blocks.trained(setting, text, train_blocks.PER_POINT, seeds=(1,))
    return curve, run["curves"][1][:1], len(text) == stored["training_bytes"]


def of_post_norm():
    stored, text = record("post_norm"), train_blocks.as_bytes()[0]
    run = post_norm_runs.bert(small=("values",), steps=post_norm_runs.SHORT)
    found = stored["runs"][list(post_norm_runs.RUNS).index(run)]["models"][0]["first"]
    losses = train_post_norm.trained(run, text, 0, num_steps=10)[-1]
    return losses, found, len(text) == stored["training_bytes"]


def of_recurrent(kind):
    recorded, task, losses = record("recurrent"), recurrent_runs.COPY[10], []
    (run,) = (run for run in recorded["runs"][task.name] if (run["kind"], run["seed"]) == (kind, 1))
    assert run["rate"] == recorded["rates"][task.name][kind]
    settings = recurrent_runs.settings(run["num_steps"], run["rate"], 1)

    def note(metrics, step):
        losses.append(metrics["loss"])
        if step == 5:
            raise StopIteration

    model, batches = recurrent_runs.new_model(kind, task, 1), recurrent_runs.batches(task, 1)
    with pytest.raises(StopIteration):
        pf.fit(model, pf.training.next_token_loss, batches, settings, callbacks=[note], progress=False)
    return losses, run["first"], True


def of_the_lstm():
    return of_recurrent("lstm")


def of_gated_linear_attention():
    return of_recurrent("gated")


def of_layers_with_a_state():
    task = next(iter(train_delta.KINDS))
    model = eqx.filter_jit(delta_runs.new_model)("delta", task, jax.random.key(0))
    batch = jax.tree.map(jnp.asarray, delta_runs.texts_of(task, (0, 0)))
    loss = pf.cross_entropy(*delta_runs.answered(model, batch))
    return [float(loss)], record("delta")[task.name]["delta"]["runs"][0]["first"][:1], True


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize(
    "begun",
    [
        of_positions,
        of_the_first_decoder,
        of_the_page,
        of_twelve_blocks,
        of_post_norm,
        of_the_lstm,
        of_gated_linear_attention,
        of_layers_with_a_state,
    ],
)
def test_runs_begin_as_recorded(begun):
    losses, expected, same_text = begun()
    np.testing.assert_allclose(losses, expected, atol=0.005 if same_text else 0.5)


def test_a_layer_that_fetches_colours_ends_as_recorded():
    run, seed = train_colours.Run(heads=2, head=12, shared=True), 1
    (layers,) = (each["layers"] for each in record("colours")["runs"] if each["name"] == run.name)
    with jax.numpy_dtype_promotion("standard"):
        layer = train_colours.trained(run, seed)
        off = train_colours.misses(layer, *train_colours.scenes_of(4096, seed=1000))
    assert abs(float((off**2).mean()) - layers[seed]["error"]) < 0.003


def test_a_draft_is_trained_and_asked_as_recorded():
    decoder, vocabulary = pf.load_pretrained("decoder")
    training, held_out = (vocabulary.encode(text) for text in pf.data.python_reference_splits())
    (run,) = (run for run in record("drafts")["runs"] if (run["num_steps"], run["seed"]) == (120, 1))
    with jax.numpy_dtype_promotion("standard"):
        draft, first = train_drafts.trained(training, len(vocabulary), 120, 1)
        found = train_drafts.asked(decoder, draft, train_drafts.beginnings(held_out)[:8], numbers=(4,))
    np.testing.assert_allclose(first, run["first"], atol=0.02)
    assert np.mean(found["calls"]["4"]) == pytest.approx(np.mean(run["calls"]["4"]), rel=0.15)


def test_dynamics_learns_the_same_from_the_same(tmp_path, monkeypatch):
    """A run of a few steps is kept, and gone on from; and it learns."""
    monkeypatch.setattr(train_dynamics, "KEPT", tmp_path)
    config = train_dynamics.TrajectoryConfig(num_blocks=1, num_layers=1, num_layers_alone=1, num_models=2)
    run = train_dynamics.Run(200, (0.4, 0.6), spacing=0.5, config=config)
    with jax.numpy_dtype_promotion("standard"):
        models = train_dynamics.trained("toy", run, rate=lambda kind, run: 0.01)
        again = train_dynamics.trained("toy", run, rate=lambda kind, run: 0.01)
    assert all(map(np.array_equal, jax.tree.leaves(models), jax.tree.leaves(again)))
    before = train_dynamics.TrajectoryModels(config, key=jax.random.key(train_dynamics.SEED))
    batch = train_dynamics.in_columns(run.splits().validation, is_told=False)
    for kind in train_dynamics.KINDS:
        first, last = (float(train_dynamics.column_loss(each.one(kind, 1), *batch)) for each in (before, models))
        assert last < first


# --- What is trained on, and with -------------------------------------------------------------------------------


def test_squeezed_positions_have_the_angles_of_places_nearer_by():
    rows = jax.random.normal(jax.random.key(0), (5, 8))
    far = train_positions.SqueezedPositions(base=10_000.0, fraction=1.0).rotate(rows, 4 * np.arange(5))
    np.testing.assert_allclose(far, pf.RotaryPositions().rotate(rows), atol=1e-6)


def test_the_head_that_looks_back_divides_its_attention():
    run = train_positions.Run("relative")
    looks = train_positions.look_back(train_positions.LookBack(run), train_positions.texts(run)[:2])
    assert looks.shape == (101,)
    assert float(looks.sum()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("scaling", train_long.ways(64).values())
def test_speeds_as_arrays_turn_like_the_package(scaling):
    rows = np.random.default_rng(0).normal(size=(70, 8)).astype(np.float32)
    expected = pf.RotaryPositions(scaling=scaling).rotate(rows)
    np.testing.assert_allclose(train_long.turning(8, scaling).rotate(rows), expected, rtol=0, atol=1e-5)


def test_needles_are_possible_stories_with_one_answer():
    for row, end, answer in zip(*train_long.needles(128), strict=True):
        chances = pf.data.next_words(train_long.growing.VOCABULARY.decode(row[: end + 1].tolist()))
        assert [train_long.growing.VOCABULARY.encode(word)[0] for word in chances] == [answer]
        assert abs(end - 3 - 128) <= 3


def test_values_as_in_pytorch_are_small():
    reader = train_post_norm.Reader(post_norm_runs.AS_PYTORCH, jax.random.key(0))
    of_value, of_output = (jnp.mean(w**2) * 32 for w in train_post_norm.matrices(reader.blocks)["values"])
    assert of_value == pytest.approx(1 / 2, rel=0.05)
    assert of_output == pytest.approx(1 / 3, rel=0.05)


def test_gated_linear_attention_writes_as_it_reads_and_differs_from_the_decoder_in_nothing_else():
    model, modern = (recurrent_runs.new_model(kind, recurrent_runs.COPY[10], 0) for kind in ("gated", "modern"))
    assert type(model.stack.blocks[0].feed_forward) is type(modern.stack.blocks[0].feed_forward)
    assert model.stack.scheme == modern.stack.scheme
    ids = jnp.asarray([3, 1, 4, 1, 5])
    states = [block.attention.start() for block in model.stack.blocks]
    rows = []
    for n in range(5):
        row, states = train_recurrent.extend_gated(model, ids[n : n + 1], states, jnp.asarray([n]))
        rows.append(model.logits(row))
    np.testing.assert_allclose(jnp.concatenate(rows), model(ids), atol=1e-5)


def test_copying_asks_for_the_symbols_after_the_mark():
    inputs, targets, is_due = recurrent_runs.copy_texts(3, (0,), 2)
    np.testing.assert_array_equal(targets[is_due].reshape(2, -1), inputs[:, : recurrent_runs.COPIED])
    assert (inputs[:, 11] == recurrent_runs.MARK).all()
    assert (inputs[:, 8:11] == recurrent_runs.BLANK).all()
    lengths = set()
    for inputs, targets, is_due in zip(*map(np.asarray, delta_runs.copy_texts(3, 20, 2, 6)), strict=True):
        length = inputs.tolist().index(delta_runs.SYMBOLS)
        lengths.add(length)
        np.testing.assert_array_equal(targets[is_due], inputs[:length])
        np.testing.assert_array_equal(np.flatnonzero(is_due), np.arange(length, 2 * length))
    assert lengths == {2, 3, 4, 5, 6}


def test_recall_asks_for_the_last_number_of_each_name():
    for names, numbers, answers in zip(*delta_runs.recall_texts(3, 5, in_use := 4, 20), strict=True):
        last = dict(zip(names[:20].tolist(), numbers[:20].tolist(), strict=True))
        assert len(last) <= in_use
        assert answers.tolist() == [last[name] for name in names[20:].tolist()]
        assert set(numbers[20:].tolist()) == {delta_runs.NUM_NUMBERS}


def test_rules_of_a_memory_begin_with_the_same_numbers_and_answer_differently():
    texts = delta_runs.recall_texts(4, 2, 3, 8)
    made = [delta_runs.Memory(rule, 32, 16, key=jax.random.key(1)) for rule in delta_runs.RULES]
    assert all(eqx.tree_equal(jax.tree.leaves(made[0]), jax.tree.leaves(each)) for each in made)
    answers = [np.asarray(each(texts.names, texts.numbers)) for each in made]
    assert all(np.abs(one - two).max() > 1e-3 for one, two in itertools.pairwise(answers))


def test_expanded_keys_and_values_give_what_the_absorbed_form_gives():
    stack = pf.StackConfig(**train_latent.WRITING, **train_latent.KINDS["latent"], position_scheme="rotary")
    model = pf.Decoder(pf.DecoderConfig(11, 9, stack), key=jax.random.key(0))
    expanded, tokens = train_latent.with_expanded(model), jnp.arange(6)
    found = expanded.logits(expanded.extend(tokens, expanded.make_cache())[0])
    np.testing.assert_allclose(found, expanded(tokens), rtol=1e-4, atol=1e-4)


def test_information_of_experts_by_hand():
    experts, labels = np.array([0, 0, 1, 1]), np.array([3, 3, 5, 5])
    assert train_experts.information(experts, labels) == pytest.approx(np.log(2))
    assert train_experts.information(experts, labels[[0, 2, 0, 2]]) == pytest.approx(0)
    tokens = np.array([7, 8, 7, 8])
    assert train_experts.within(experts, labels, tokens) == pytest.approx(np.log(2))  # the token says nothing of it
    assert train_experts.within(experts, labels, labels) == pytest.approx(0)  # the token says all of it


def test_caches_are_rounded_as_the_package_does_and_lose_what_was_computed_at_once(monkeypatch):
    """One token at a time with a cache of 4 bits, and all at once with the newest group exact."""
    numbers = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3, 8)), jnp.float32)
    np.testing.assert_allclose(caches_record.rounded(numbers, 15.0), quantise_groups(numbers, 4).numbers(), atol=1e-6)
    monkeypatch.setattr(caches_record, "NUM_TEXTS", 3)
    ids, way = caches_record.texts_of("stories", 0), caches_record.WAYS[2]
    with jax.numpy_dtype_promotion("standard"):
        whole, more = caches_record.losses_of("stories", 0, [way]).values()
    assert whole + more == pytest.approx(caches_record.loss_by_cache("stories", ids, *way[:2]), abs=2e-4)


@pytest.mark.parametrize("name", ["stories", "docstrings"])  # with ALiBi, and with rotary positions
def test_large_channels_leave_a_model_what_it_is(name):
    model, _ = pf.load_pretrained(name)
    ids = jnp.asarray(np.random.default_rng(0).integers(0, 40, (2, 11)))
    large = caches_record.with_large_channels(model)
    np.testing.assert_allclose(large(ids), model(ids), rtol=1e-3, atol=1e-3)
    keys = [pf.look(each, ids)[1]["stack.blocks.1.attention.keys"] for each in (model, large)]
    np.testing.assert_allclose(keys[1][..., 0], caches_record.FACTOR * keys[0][..., 0], rtol=1e-3, atol=1e-3)


def test_the_floor_of_the_world_is_the_lowest_loss_of_the_stories_kept_back():
    assert train_scaling_laws.least() == pytest.approx(record("staircase")["lowest"], abs=1e-5)
    least = train_verbs_last.texts("verbs last", train_verbs_last.NUM_KEPT_BACK, 1000)[2]
    assert least == pytest.approx(record("verbs_last")["least"], abs=1e-4)


def test_a_copy_leaves_the_run_where_it_is():
    windows = np.random.default_rng(0).integers(7, size=(64, train_scaling_laws.LENGTH + 1))
    text = train_scaling_laws.Text(7, windows, windows[:32], (4, 8))
    one, other = (train_scaling_laws.Run(16, text, 0) for _ in range(2))
    one.train({0: 0.01})
    one.model_after({1: 0.01, 2: 0.02})
    for run in (one, other):
        run.train(dict.fromkeys(range(0 if run is other else 1, 3), 0.01))
    np.testing.assert_array_equal(one.params.stack.final_norm.scale, other.params.stack.final_norm.scale)


def test_templates_and_losses_differ_in_what_counts():
    told = pf.data.dialogues(5, train_answering.NUM_WORDS, seed=3)
    texts = [train_answering.dialogue_ids(each) for each in told]
    counts = {loss: train_answering.windows(texts, loss).is_token.sum() for loss in train_answering.LOSSES}
    assert counts["answers"] == 2 * 5
    assert counts["end as padding"] == 5
    assert counts["questions, too"] == sum(len(each.question.split()) + 3 for each in told)
    assert counts["all tokens"] == sum(len(text) - 1 for text in texts)
    assert counts["padding, too"] == 2 * 5 + sum(train_answering.LENGTH + 1 - len(text) for text in texts)


def test_a_listener_prefers_as_bradley_and_terry_say():
    one, other = np.array([3.0, 0.0]), np.array([1.0, 0.0])
    np.testing.assert_allclose(train_preferring.share_of_first(one, other), [1 / (1 + np.exp(-2)), 0.5])


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_step_of_the_recipes_is_one_of_the_package(optimiser):
    with jax.numpy_dtype_promotion("standard"):  # optax takes powers of floats
        recipe = recipes.Recipe(optimiser, width=16, steps=60)
        params = recipes.Run.begin(recipe).params
        grads = jax.tree.map(lambda leaf: jnp.full(leaf.shape, 0.01).at[..., 0].set(-0.02), params)
        package = pf.training.make_optimiser(recipes.training_of(recipe))
        state, wanted = package.init(params), params
        ours, found = recipes.optimiser_of(recipe, 0.0, 0.1, 0.0).init(params), params
        for rate in recipes.rates_of(recipe)[:2]:
            updates, state = package.update(grads, state, wanted)
            wanted = eqx.apply_updates(wanted, updates)
            updates, ours = recipes.optimiser_of(recipe, float(rate), 0.1, 0.0).update(grads, ours, found)
            found = eqx.apply_updates(found, updates)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_rates_of_recipes_are_those_of_the_schedules_and_steps_to_a_level_are_counted():
    recipe = dataclasses.replace(recipes.SCHEDULES["wsd"], schedule="constant", rate=0.01)
    level, falling = recipes.rates_of(recipe), recipes.rates_of(recipe, 100)
    np.testing.assert_allclose(level[recipes.WARMUP :], 0.01, rtol=1e-6)
    np.testing.assert_array_equal(level[:301], falling[:301])
    np.testing.assert_allclose(falling[350], 0.01 * 0.55, rtol=1e-5)
    assert recipes.steps_to([0.5, 0.3, 0.4, 0.2], 0.3) == 2 * recipes.EVERY
    assert recipes.steps_to([0.5], 0.3) is None


def test_a_machine_of_the_walk_learns_and_begins_anew_with_each_seed():
    stack = train_walk.config_of("windows in turn").stack
    assert stack.kinds == ("window", "full", "window", "full")
    assert train_walk.read_bytes(stack) == cache_bytes(stack, train_walk.LENGTH) * (32 + 128) // (2 * 128)
    windows = np.random.default_rng(0).integers(7, size=(50, train_walk.LENGTH + 1))
    config = train_walk.config_of("sinks", width=16, vocab_size=7)
    batches = train_walk.batches_of(windows, 0)
    sinks = []
    for seed in (0, 1):
        model, _ = train_walk.after_training(config, batches, 0.01, 2, seed)
        sinks.append(model.stack.blocks[0].attention.kernel.sinks)
    assert (sinks[0] != 0).all()
    assert (sinks[0] != sinks[1]).any()
