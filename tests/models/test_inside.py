"""Looking for the part that did it: every function agrees with a computation by hand, on every kind of model."""

import dataclasses
import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from all_models import DRAWS, KINDS, LAYERS, new_model, texts
from jaxtyping import Array

import plainformer as pf
from plainformer.models import (
    changed,
    control_labels,
    effect,
    heads_at,
    induction_scores,
    lens,
    mean_run,
    patch,
    patch_path,
    probe_accuracy,
    silence,
    steer,
)

HEADS = 6
CONFIG = pf.DecoderConfig(11, 16, pf.StackConfig(d_model=24, num_layers=2, num_heads=HEADS, num_kv_heads=2, d_ff=10))
OURS, THEIRS = jnp.asarray([3, 1, 4, 1, 5]), jnp.asarray([9, 2, 6, 5, 3])


def decoder():
    return new_model("decoder", config=CONFIG)


def other_inputs(kind):
    """Inputs of the same shape that differ."""
    changed = [x[..., ::-1, :] if x.ndim == 3 else (x + 1) % 9 for x in KINDS[kind].inputs]
    return (changed[0], *KINDS[kind].inputs[1:])


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.equation("eq-inside-lens")
@pytest.mark.parametrize("num_layers", [2, 12])
def test_lens_reads_the_stream_at_each_depth_by_the_last_norm_and_the_table(num_layers):
    """Twelve, since block 10 comes before block 2 in an order of letters."""
    stack = dataclasses.replace(CONFIG.stack, num_layers=num_layers)
    model = new_model("decoder", config=dataclasses.replace(CONFIG, stack=stack))
    for said, x in zip(lens(model, OURS), model.residual_stream(OURS), strict=True):
        close(said, model.logits(x))


def test_lens_of_an_encoder_and_a_decoder_reads_the_decoder():
    model, inputs = new_model("seq2seq"), KINDS["seq2seq"].inputs
    _, seen = pf.look(model, *inputs)
    stack = next(name for name in reversed(seen) if name.endswith("stack.input")).removesuffix("input")
    places = [f"{stack}input", *(f"{stack}blocks.{block}.output" for block in range(LAYERS))]
    for said, place in zip(lens(model, *inputs), places, strict=True):
        close(said, pf.look(model, *inputs, replace={places[-1]: seen[place]})[0])


class Runs(NamedTuple):
    """A model, two inputs of the same shape, and what it says of the second and shows of it."""

    kind: str
    model: eqx.Module
    ours: tuple
    theirs: tuple
    said: Array
    source: dict

    @property
    def first(self):
        """The name of all that is read."""
        return next(name for name in self.source if name.endswith("stack.input"))


@functools.cache
def runs(kind):
    model, ours, theirs = new_model(kind), KINDS[kind].inputs, other_inputs(kind)
    return Runs(kind, model, ours, theirs, *pf.look(model, *theirs))


def check_look(of):
    close(of.said, of.model(*of.theirs))


def check_lens(of):
    said = lens(of.model, *of.theirs)
    assert len(said) == LAYERS + 1
    close(said[-1], of.said)
    assert np.abs(said[0] - of.said).max() > 1e-3


def check_silence(of):
    """A silent head is one whose rows of the output map are zeros."""

    def weight(model):
        stack = model.stack if hasattr(model, "stack") else model.encoder.stack
        return stack.blocks[0].attention.output.weight

    without = eqx.tree_at(weight, of.model, weight(of.model).at[8:12].set(0))
    close(silence(of.model, *of.ours, places=heads_at(of.source, [(0, 2)])), without(*of.ours))


def check_patch(of):
    """All that is read turns every model, and nothing leaves it."""
    close(patch(of.model, *of.ours, places={of.first: ...}, source=of.source), of.said)
    close(patch(of.model, *of.ours, places={}, source=of.source), of.model(*of.ours))


def check_path(of):
    """With nothing held all paths together turn every model, and none leads back."""
    route = {"source": of.source, "hold": ()}
    last = [name for name in of.source if name.endswith("stack.output")][-1]
    close(patch_path(of.model, *of.ours, sender={of.first: ...}, receiver={last: ...}, **route), of.said)
    close(patch_path(of.model, *of.ours, sender={last: ...}, receiver={of.first: ...}, **route), of.model(*of.ours))


def check_steer(of):
    """The whole difference of what two runs read turns the one into the other; half of it twice is the same."""
    direction = of.source[of.first] - pf.look(of.model, *of.ours)[1][of.first]
    close(steer(of.model, *of.ours, places={of.first: ...}, direction=direction), of.said)
    close(steer(of.model, *of.ours, places={of.first: ...}, direction=-direction / 2, strength=-2.0), of.said)


def check_probe(of):
    """What the stream holds can be read from it, here the sign of one of its columns."""
    _, seen = pf.look(of.model, *DRAWS.get(of.kind, lambda *shape: (texts(*shape),))(300))
    rows = seen[next(name for name in seen if name.endswith("blocks.1.output"))][:, -1]
    assert probe_accuracy(rows, (rows[:, 5] > jnp.median(rows[:, 5])).astype(int), 200) > 0.8


CHECKS = [check_look, check_lens, check_silence, check_patch, check_path, check_steer, check_probe]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_every_function_works_on_every_model(check, kind):
    check(runs(kind))


@pytest.mark.equation("eq-inside-patch")
def test_patching_a_head_is_what_its_rows_of_the_output_map_would_add():
    model = decoder()
    _, source = pf.look(model, THEIRS)
    said = patch(model, OURS, places=heads_at(source, [(1, 4)]), source=source)
    _, seen = pf.look(model, OURS)
    rows = model.stack.blocks[1].attention.output.weight[4 * 4 : 5 * 4]
    moved = (source["stack.blocks.1.attention.heads"][4] - seen["stack.blocks.1.attention.heads"][4]) @ rows
    instead = seen["stack.blocks.1.after_attention"] + moved
    close(said, pf.look(model, OURS, replace={"stack.blocks.1.after_attention": instead})[0])


@pytest.mark.equation("eq-inside-silence")
def test_silence_by_the_mean_puts_the_mean_of_the_texts_there():
    model, texts = decoder(), jnp.stack([OURS, THEIRS, OURS[::-1]])
    _, seen = pf.look(model, texts)
    places = {"stack.blocks.0.attention.heads": np.s_[..., [1, 3], :, :]}
    two, mean = np.array([1, 3]), seen["stack.blocks.0.attention.heads"].mean(axis=0)
    instead = seen["stack.blocks.0.attention.heads"].at[:, two].set(mean[two])
    wanted, _ = pf.look(model, texts, replace={"stack.blocks.0.attention.heads": instead})
    close(silence(model, texts, places=places, instead=mean_run(seen)), wanted)


def test_heads_of_a_group_share_a_key_head():
    _, seen = pf.look(decoder(), OURS)
    name = "stack.blocks.1.attention."
    assert heads_at(seen, [(1, 2), (1, 3)], "keys") == {f"{name}keys": np.s_[..., [0, 1], :, :]}
    assert heads_at(seen, [(1, 0), (1, 1)], "keys") == {f"{name}keys": np.s_[..., [0], :, :]}
    assert heads_at(seen, [(1, 2), (0, 3)], "queries") == {
        f"{name}queries": np.s_[..., [2], :, :],
        "stack.blocks.0.attention.queries": np.s_[..., [3], :, :],
    }


@pytest.mark.equation("eq-inside-path")
def test_a_path_carries_what_the_sender_adds_to_the_stream_and_no_more():
    model = decoder()
    _, seen = pf.look(model, OURS)
    _, source = pf.look(model, THEIRS)
    sender, receiver = heads_at(seen, [(0, 4)]), heads_at(seen, [(1, 3)], "keys")
    said = patch_path(model, OURS, sender=sender, receiver=receiver, source=source)
    block = model.stack.blocks[1]
    rows = model.stack.blocks[0].attention.output.weight[4 * 4 : 5 * 4]
    sent = (source["stack.blocks.0.attention.heads"][4] - seen["stack.blocks.0.attention.heads"][4]) @ rows
    heard = block.attention_norm(seen["stack.blocks.0.output"] + sent)
    keys = block.attention.key(heard).reshape(5, 2, 4).swapaxes(0, 1)
    wanted = seen["stack.blocks.1.attention.keys"].at[1].set(keys[1])
    close(said, pf.look(model, OURS, replace={"stack.blocks.1.attention.keys": wanted})[0])


@pytest.mark.parametrize(
    ("held", "heard"),
    [
        ("attention.heads", ["attention.queries", "attention.keys", "attention.values"]),
        ("feed_forward.output", ["feed_forward_norm.output"]),
    ],
)
def test_a_receiver_that_is_held_hears_all_that_its_part_hears(held, heard):
    model = decoder()
    _, source = pf.look(model, THEIRS)
    said, through = (
        patch_path(
            model,
            OURS,
            sender=heads_at(source, [(0, 4)]),
            receiver={f"stack.blocks.1.{name}": ... for name in names},
            source=source,
        )
        for names in ([held], heard)
    )
    close(said, through)
    assert np.abs(said - model(OURS)).max() > 1e-3


def test_senders_do_not_hear_one_another():
    """What heads beside a sender would answer to an earlier one is held, too."""
    model = decoder()
    _, seen = pf.look(model, OURS)
    _, source = pf.look(model, THEIRS)
    sender = heads_at(source, [(0, 4), (1, 2)])
    replace = {name: x for name, x in seen.items() if name.endswith(("heads", "feed_forward.output"))}
    replace |= {name: replace[name].at[place].set(source[name][place]) for name, place in sender.items()}
    said = patch_path(model, OURS, sender=sender, receiver={"stack.output": ...}, source=source)
    close(said, pf.look(model, OURS, replace=replace)[0])


def test_no_path_leads_through_the_gate_of_a_delta_block():
    """All that a held block adds to the stream is as it was, so that the sender's own addition is all that differs."""
    stack = dataclasses.replace(CONFIG.stack, pattern=("full", "delta"), num_kv_heads=None)
    model = new_model("decoder", config=dataclasses.replace(CONFIG, stack=stack))
    _, seen = pf.look(model, OURS)
    _, source = pf.look(model, THEIRS)
    name = "stack.blocks.0.attention.heads"
    moved = (source[name][4] - seen[name][4]) @ model.stack.blocks[0].attention.output.weight[4 * 4 : 5 * 4]
    wanted = model.logits(seen["stack.output"] + moved)
    route = {"sender": heads_at(seen, [(0, 4)]), "receiver": {"stack.output": ...}, "source": source}
    close(patch_path(model, OURS, **route), wanted)
    assert np.abs(patch_path(model, OURS, **route, hold="feed_forward.output") - wanted).max() > 1e-3


def test_no_path_leads_back():
    model = decoder()
    _, source = pf.look(model, THEIRS)
    back = patch_path(
        model, OURS, sender=heads_at(source, [(1, 4)]), receiver=heads_at(source, [(0, 3)], "values"), source=source
    )
    close(back, model(OURS))


def test_paths_through_networks_count_as_direct_where_networks_are_not_held():
    model = decoder()
    _, source = pf.look(model, THEIRS)
    route = {"sender": heads_at(source, [(0, 4)]), "receiver": {"stack.output": ...}, "source": source}
    strict = patch_path(model, OURS, **route)
    wide = patch_path(model, OURS, hold=["attention.heads"], **route)
    assert np.abs(strict - wide).max() > 1e-3
    close(patch_path(model, OURS, hold="attention.heads", **route), wide)


def test_a_path_leads_from_the_encoder_into_the_decoder():
    model, (source_ids, target) = new_model("seq2seq"), KINDS["seq2seq"].inputs
    _, source = pf.look(model, *other_inputs("seq2seq"))
    sender = {"encoder.stack.blocks.1.attention.heads": ...}
    receiver = heads_at(source, [(0, 1)], "values", "cross_attention")
    said = patch_path(model, source_ids, target, sender=sender, receiver=receiver, source=source)
    assert np.abs(said - model(source_ids, target)).max() > 1e-3


def test_a_place_that_is_named_twice_is_moved_once():
    direction = jnp.arange(24.0)
    twice, once = (steer(decoder(), OURS, places={"stack.input": [*at]}, direction=direction) for at in ([3, 3], [3]))
    close(twice, once)
    close(once, steer(decoder(), OURS, places={"stack.input": np.s_[3, :]}, direction=direction))


HEAD = {"stack.blocks.0.attention.heads": np.s_[..., [1], :, :]}
LAST = {"stack.output": ...}
PASSES = {  # how often each has to run the model
    "look": (1, lambda model, inputs, source: pf.look(model, *inputs)[0]),
    "lens": (1, lambda model, inputs, source: lens(model, *inputs)),
    "silence": (1, lambda model, inputs, source: silence(model, *inputs, places=HEAD)),
    "patch": (1, lambda model, inputs, source: patch(model, *inputs, places=HEAD, source=source)),
    "steer": (1, lambda model, inputs, source: steer(model, *inputs, places=LAST, direction=jnp.ones(24))),
    "path": (
        3,
        lambda model, inputs, source: patch_path(model, *inputs, sender=HEAD, receiver=LAST, source=source),
    ),
}


@pytest.mark.parametrize("kind", ["decoder", "seq2seq"])
@pytest.mark.parametrize(("needed", "function"), PASSES.values(), ids=PASSES)
def test_each_costs_the_passes_that_it_needs(needed, function, kind):
    model, inputs = new_model(kind), KINDS[kind].inputs
    _, source = pf.look(model, *inputs)
    count = pf.training.count_flops
    readouts = 2 * count(model.logits, source["stack.output"]) if function is PASSES["lens"][1] else 0
    assert (
        count(lambda *given: function(model, given, source), *inputs) <= 1.1 * needed * count(model, *inputs) + readouts
    )


@pytest.mark.equation("eq-inside-effect")
def test_effect_is_0_without_a_change_1_at_the_other_answer_and_may_overshoot():
    before, source = jnp.asarray([2.0, -1.0, 4.0, 1.0]), jnp.asarray([-2.0, 3.0, 2.0, 2.0])
    patched = jnp.asarray([2.0, 3.0, 3.0, 0.0])
    close(effect(patched, before, source), [0, 1, 0.5, -1])


@pytest.mark.equation("eq-inside-induction")
def test_induction_scores_by_hand():
    weights = np.zeros((2, 5, 5), np.float32)
    weights[0, 3, 1], weights[0, 4, 2], weights[1, 3, 0], weights[1, 4, 1] = 1, 0.5, 1, 1
    close(induction_scores(jnp.asarray(weights), period=3), [0.75, 0])  # one token further on, not the same token


def test_probe_tells_apart_what_a_line_divides_and_no_more():
    rng = np.random.default_rng(0)
    rows = jnp.asarray(rng.normal(size=(300, 6)), jnp.float32)
    assert probe_accuracy(rows, jnp.asarray(rows[:, 2] > 0, int), 200) > 0.9
    assert probe_accuracy(rows, jnp.asarray(rows[:, 2] * rows[:, 3] > 0, int), 200) < 0.7


@pytest.mark.equation("eq-inside-selectivity")
def test_control_labels_are_the_same_for_a_kind_and_learned_only_by_heart():
    kinds = jnp.asarray(np.random.default_rng(1).integers(50, size=400))
    labels = control_labels(kinds, 4, seed=2)
    assert all(len(set(np.asarray(labels)[kinds == kind])) == 1 for kind in np.unique(kinds))
    assert set(np.asarray(labels)) == {0, 1, 2, 3}
    one_hot = jnp.eye(50)[kinds]
    assert probe_accuracy(one_hot, labels, 300) > 0.95  # a row for each kind: learned by heart
    assert not np.array_equal(labels, control_labels(kinds, 4, seed=3))


@pytest.mark.gate
def test_a_model_with_a_silent_head_writes_with_a_cache_what_it_says_without():
    model, prompts = decoder(), [[3, 1, 4], [9, 2, 6, 5, 3]]
    places = {"stack.blocks.0.attention.heads": np.s_[..., [1, 3, 4, 5], :, :]}
    written = pf.generate(changed(model, silence, places=places), prompts, 6, temperature=0)
    for prompt, found in zip(prompts, written, strict=True):
        said = silence(model, jnp.asarray(prompt + found.tokens), places=places)
        np.testing.assert_array_equal(said.argmax(axis=-1)[len(prompt) - 1 : -1], found.tokens)
    assert [each.tokens for each in pf.generate(model, prompts, 6, temperature=0)] != [each.tokens for each in written]


def test_an_encoder_and_a_decoder_write_with_the_decoder_changed():
    model, (source, _) = new_model("seq2seq"), KINDS["seq2seq"].inputs
    places, start = {"stack.blocks.1.cross_attention.heads": ...}, model.config.start_token
    conditioned = changed(model, silence, places=places).condition_on(source)
    found = pf.generate(conditioned, [start], 4, temperature=0).tokens
    said = silence(model, source, jnp.asarray([start, *found]), places=places)
    np.testing.assert_array_equal(said.argmax(axis=-1)[:-1], found)
    conditioned = changed(model, silence, places={"encoder.stack.input": ...}).condition_on(source)
    with pytest.raises(ValueError, match="which was not seen"):
        pf.generate(conditioned, [start], 4, temperature=0)


# --- bad input


def test_heads_that_are_none_are_refused():
    _, seen = pf.look(decoder(), OURS)
    _, of_two = pf.look(new_model("seq2seq"), *KINDS["seq2seq"].inputs)
    for stacks, head in [*((seen, head) for head in [(0, 6), (2, 0), (-1, 0), (0, -1)]), (of_two, (2, 0))]:
        with pytest.raises(ValueError, match=r"There is no heads of head .* blocks 0 to 1, with heads 0 to 5"):
            heads_at(stacks, [head])
    with pytest.raises(ValueError, match="part is 'colours'"):
        heads_at(seen, [(0, 0)], "colours")
    del seen["stack.blocks.0.attention.scores"]  # as a block with a state has none
    with pytest.raises(ValueError, match=r"There is no scores of head 0 in block 0; expected one of blocks 1, with"):
        heads_at(seen, [(0, 0)], "scores")


def test_heads_are_pairs_of_whole_numbers_of_pythons_or_numpys():
    _, seen = pf.look(decoder(), OURS)
    assert heads_at(seen, [np.unravel_index(8, (2, HEADS))]) == heads_at(seen, [(1, 2)])
    with pytest.raises(ValueError, match=r"expected block and head of each, such as \[\(2, 4\)"):
        heads_at(seen, [(0, True)])


@pytest.mark.usefixtures("unchecked")
def test_what_is_held_is_named_by_endings_of_names():
    route = {"sender": HEAD, "receiver": LAST, "source": pf.look(decoder(), THEIRS)[1]}
    with pytest.raises(ValueError, match=r"hold has 'attention\.headz', .* expected such as \['attention\.heads'"):
        patch_path(decoder(), OURS, **route, hold=["attention.headz"])
    for hold in (3, None, [3]):
        with pytest.raises(TypeError, match="expected endings of names, such as"):
            patch_path(decoder(), OURS, **route, hold=hold)


def test_runs_of_other_lengths_and_models_are_refused():
    model = decoder()
    for tokens in (1, 4):  # a single row would broadcast to all of them
        source, place = pf.look(model, THEIRS[:tokens])[1], {"stack.input": ...}
        with pytest.raises(
            ValueError, match=rf"shape \({tokens}, 24\) in source and \(5, 24\) here; .* Try as many texts"
        ):
            patch(model, OURS, places=place, source=source)
        with pytest.raises(ValueError, match=rf"shape \({tokens}, 24\) in source and \(5, 24\) here"):
            patch_path(model, OURS, sender=place, receiver=place, source=source)
    _, source = pf.look(model, jnp.stack([THEIRS, OURS]))
    for ours in (OURS, jnp.stack([OURS, OURS, OURS])):
        with pytest.raises(ValueError, match=r"expected two runs on as many texts\."):
            patch(model, ours, places=place, source=source)
    with pytest.raises(ValueError, match=r"source has no 'stack\.blocks\.7\.output'"):
        patch(model, OURS, places={"stack.blocks.7.output": ...}, source=source)
    with pytest.raises(ValueError, match="which was not seen"):
        silence(model, OURS, places={"stack.blocks.7.output": ...})


@pytest.mark.parametrize("index", [np.s_[5, :], np.s_[-6, :], np.s_[5:, :], np.s_[..., [1, 9], :], np.s_[0, 0, 0]])
def test_places_where_there_is_nothing_are_refused(index):
    with pytest.raises(ValueError, match=r"stack\.input has shape \(5, 24\) and nothing at .* up to 4 .* Try np\.s_"):
        silence(decoder(), OURS, places={"stack.input": index})


@pytest.mark.run_time_check
@pytest.mark.parametrize(("axis", "at"), [(0, 6), (0, -7), (1, 5), (2, 4)])
def test_places_where_there_is_nothing_are_refused_when_a_compiled_function_runs(axis, at):
    def silent(at):
        index = [(at, ...), (slice(None), [at, 0]), (..., at)][axis]
        return silence(decoder(), OURS, places={"stack.blocks.0.attention.heads": index})

    size = (HEADS, 5, 4)[axis]
    close(eqx.filter_jit(silent)(jnp.asarray(size - 1)), silent(size - 1))
    message = rf"place in stack\.blocks\.0\.attention\.heads is not allowed; expected an index up to {size - 1}\."
    for compiled in (eqx.filter_jit(silent), lambda at: jax.vmap(silent)(at[None])):
        with pytest.raises(eqx.EquinoxRuntimeError, match=message):
            jax.block_until_ready(compiled(jnp.asarray(at, jnp.int8)))


@pytest.mark.parametrize("at", [jnp.asarray(1.0), jnp.arange(5) < 2])
def test_traced_places_that_are_no_whole_numbers_are_refused(at):
    with pytest.raises(TypeError, match=r"place in stack\.input is traced and holds .* expected whole numbers"):
        jax.jit(lambda at: silence(decoder(), OURS, places={"stack.input": at}))(at)


def test_a_place_without_the_axis_of_a_batch_is_refused_with_what_to_try():
    with pytest.raises(ValueError, match=r"nothing at .*; the first axis is the batch: try np\.s_\[\.\.\., 3, :\]\."):
        silence(decoder(), OURS[None], places={"stack.input": 3})


@pytest.mark.parametrize("kind", KINDS)
def test_a_mean_is_taken_over_inputs_and_no_other_axis(kind):
    of = runs(kind)
    for name, array in ((name, array) for name, array in of.source.items() if "stack." in name):
        with pytest.raises(ValueError, match=r"of one text; expected a batch: pf\.look\(model, ids\[None\]\)"):
            mean_run({name: array})
        with pytest.raises(ValueError, match="of no text"):
            mean_run({name: array[None][:0]})
        close(mean_run({name: array[None]})[name], array)


@pytest.mark.usefixtures("unchecked")
def test_what_is_no_array_or_no_dictionary_is_refused():
    model = decoder()
    for instead in ("abc", None, 1j, jax.random.key(0)):
        with pytest.raises(TypeError, match=r"source\['stack\.output'\] .* expected (an array of|real) numbers"):
            silence(model, OURS, places=LAST, instead={"stack.output": instead})
        with pytest.raises(TypeError, match=r"direction .* expected (an array of|real) numbers"):
            steer(model, OURS, places=LAST, direction=instead)
    route = {"sender": HEAD, "receiver": LAST, "source": pf.look(model, THEIRS)[1]}
    for name in route:
        with pytest.raises(TypeError, match=rf"{name} is of type \w+; expected a dictionary"):
            patch_path(model, OURS, **route | {name: None})
    with pytest.raises(TypeError, match="places is of type NoneType; expected a dictionary"):
        silence(model, OURS, places=None)


def test_directions_of_other_axes_are_refused():
    for shape, place in [((23,), ...), ((4, 24), ...), ((5, 24), np.s_[3, :])]:
        with pytest.raises(ValueError, match=r"direction has shape .* and stack\.input has .* Try a row of the stream"):
            steer(decoder(), OURS, places={"stack.input": place}, direction=jnp.ones(shape))
    with pytest.raises(ValueError, match="nothing at the place"):
        steer(decoder(), OURS, places={"stack.input": np.s_[7, :]}, direction=jnp.ones(24))


def test_what_has_no_blocks_has_no_lens():
    with pytest.raises(ValueError, match="showed no blocks"):
        lens(lambda x: pf.see("hidden", x), OURS)


def test_a_lens_on_what_returns_no_logits_is_refused_and_what_it_says_to_try_works():
    model = decoder()
    cache = model.make_cache()
    with pytest.raises(ValueError, match=r"returned a tuple; expected logits\. Try lens\(lambda ids: model\.logits"):
        lens(model.extend, OURS, cache)
    close(lens(lambda ids: model.logits(model.extend(ids, cache)[0]), OURS)[1], lens(model, OURS)[1])


def test_measures_refuse_what_they_cannot_divide_or_judge():
    one = jnp.ones(2)
    with pytest.raises(ValueError, match=r"before\[0\] is 1.0"):
        effect(one, one, one)
    with pytest.raises(ValueError, match="period=5 for 5 tokens"):
        induction_scores(jnp.zeros((5, 5)), 5)
    rows, labels = jnp.zeros((4, 2)), jnp.asarray([0, 0, 0, 1])
    with pytest.raises(ValueError, match="num_to_learn=4 of 4 examples"):
        probe_accuracy(rows, labels, 4)
    with pytest.raises(ValueError, match="labels to learn from are all the same"):
        probe_accuracy(rows, labels, 3)
    for count in (1, 2):
        with pytest.raises(ValueError, match=r"rows\[1, 0\] is nan; expected finite numbers"):
            probe_accuracy(rows.at[1, 0].set(jnp.nan), labels, count)
    with pytest.raises(ValueError, match=r"rows has shape \(4, 0\); expected at least one column"):
        probe_accuracy(rows[:, :0], labels, 3)
    with pytest.raises(ValueError, match=r"kinds\[1\] is -1; expected whole numbers from 0 on"):
        control_labels(jnp.asarray([3, -1]), 2)
    with pytest.raises(ValueError, match="kinds is empty"):
        control_labels(labels[:0], 2)
    for measure in (lambda x: probe_accuracy(rows, x, 2), lambda x: control_labels(x, 2)):
        with pytest.raises(TypeError, match="is traced, so that it has no value yet; expected an array"):
            jax.jit(measure)(labels)


def test_a_changed_model_that_is_looked_at_is_refused_and_says_why():
    model = changed(decoder(), silence, places=HEAD)
    uses = [
        lambda: pf.look(model, OURS),
        lambda: lens(model, OURS),
        lambda: steer(model, OURS, places=LAST, direction=jnp.ones(24)),
    ]
    for use in uses:
        with pytest.raises(ValueError, match=r"_Changed showed no array; .* It looks itself, as what models\.changed"):
            use()
