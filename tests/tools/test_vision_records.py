"""The recorded trainings of chapter 11 say what their cards and the chapter say."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import train_crossing_opponents as opponents
import train_filling as filling
import train_towers as towers
from convolution import ConvolutionalBlock, PatchConvolution
from records import MODELS

import plainformer as pf

(CHAPTER,) = (MODELS.parent / "chapters").glob("*_vision.md")


def words() -> str:
    return " ".join(CHAPTER.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("script", [opponents, filling, towers])
def test_each_card_says_what_was_recorded(script):
    name = script.__name__.removeprefix("train_")
    assert script.card(pf.data.load_record(name)) == (MODELS / f"{name}.md").read_text(encoding="utf-8")


def test_a_convolutional_block_is_a_convolution_of_each_channel():
    block = ConvolutionalBlock(6, key=jax.random.key(0))
    quiet = eqx.tree_at(lambda each: each.feed_forward, block, lambda rows: 0 * rows)
    x = jnp.asarray(np.random.default_rng(0).standard_normal((2, 5, 4, 6)), jnp.float32)
    kernel = block.kernel[:, :, None]  # one input channel for each of six groups
    layout = ("NHWC", "HWIO", "NHWC")
    slid = jax.lax.conv_general_dilated(
        block.first_norm(x), kernel, (1, 1), "SAME", dimension_numbers=layout, feature_group_count=6
    )
    np.testing.assert_allclose(quiet(x), x + block.mix(slid), atol=1e-5)


@pytest.mark.parametrize("pooling", ["all", "mean", "attention"])
def test_convolutions_of_patches_are_told_the_place_of_every_pixel(pooling):
    pictures = jnp.asarray(np.random.default_rng(0).random((3, 32, 32, 1)), jnp.float32)
    plain, told = (PatchConvolution(8, pooling, coordinates, key=jax.random.key(0)) for coordinates in (False, True))
    assert plain(pictures).shape == told(pictures).shape == (3, 10)
    assert told.embedding.weight.shape[0] == 3 * plain.embedding.weight.shape[0] == 192
    # The rows of patches that are equal are equal, unless their pixels know where they are.
    empty = jnp.zeros((1, 32, 32, 1))
    for model, is_told in ((plain, False), (told, True)):
        rows: list = []
        blind = eqx.tree_at(lambda each: each.blocks, model, (lambda x, seen=rows: seen.append(x) or x,))
        blind(empty)
        assert bool((abs(rows[0] - rows[0][:, :1, :1]) > 1e-3).any()) == is_told


def test_hidden_patches_alone_count_in_the_loss_of_filling():
    patches, shown = jnp.zeros((2, 16, 4)), jnp.asarray(filling.choices(2, 8, 0))
    hidden = filling.is_hidden(shown)
    assert hidden.sum(axis=1).tolist() == [8, 8]
    painted = jnp.where(jnp.asarray(hidden)[:, :, None], 2.0, 100.0) + patches
    assert filling.filling_loss(lambda *given: painted, filling.Hidden(patches, shown)) == pytest.approx(4)
    assert filling.error(painted, np.asarray(patches), shown) == pytest.approx(4)


def test_opponents_of_filling_are_as_recorded():
    assert filling.opponents() == pytest.approx(pf.data.load_record("filling")["opponents"], rel=1e-3)


def test_regression_fills_in_what_is_linear():
    """Each pixel twice the one before it: whatever is hidden follows from what is shown."""
    scales = np.random.default_rng(0).random((200, 1, 1)).astype(np.float32)
    images = scales * (1 + np.arange(64, dtype=np.float32)).reshape(1, 16, 4)
    shown = filling.choices(5, 8, 0)
    np.testing.assert_allclose(filling.by_regression(images, images[:5], shown, 1e-6), images[:5], atol=1e-2)


def test_numbers_that_are_held_out_are_in_no_batch():
    training = pf.data.digits().training
    images, spelt = towers.pairs_at(training, 0)(3)
    ids, is_letter = np.asarray(spelt).argmax(axis=2), np.asarray(spelt).any(axis=2)
    assert images.shape == (64, 8, 16, 1)
    written = [towers.LETTERS.decode(row[:length]) for row, length in zip(ids, is_letter.sum(axis=1), strict=True)]
    numbers = dict(zip(towers.NAMES, [*towers.NUMBERS] * 3, strict=True))
    assert not {numbers[name] for name in written} & set(towers.held_out().tolist())
    assert len({numbers[name] for name in written}) == 64


def test_digits_told_apart_are_named_as_recorded():
    assert towers.told() == pytest.approx(pf.data.load_record("towers")["told"], abs=0.005)


def test_the_chapter_has_the_shares_of_the_cards():
    text = CHAPTER.read_text(encoding="utf-8")
    table = pf.data.load_record("crossing_opponents")["table"]
    for name, runs in table.items():
        assert opponents.row(f"convolutions, {name}", runs) in text
    held_out = {name: 100 * np.mean([run["held_out"] for run in runs]) for name, runs in table.items()}
    turned = pf.data.load_record("crossing_opponents")["turned"]
    assert f"attention together to {max(held_out.values()):.2f} %" in words()
    assert f"that becomes {100 * max(run['held_out'] for run in turned.values()):.2f} % (one seed)" in words()
    assert f"attention on top for {max(held_out.values()):.1f} %, the best of five" in words()
    card = (MODELS / "vision_crossing.md").read_text(encoding="utf-8")
    for name in ("transformer", "convolutional network"):
        shares = re.findall(rf"^\| {name}, (?:seed \d|mean) \| (\S+)% \| (\S+)% \|$", card, flags=re.MULTILINE)
        cells = [f"{mean} % ({', '.join(each)})" for *each, mean in zip(*shares, strict=True)]
        assert f"| {' | '.join(cells)} |" in text


def test_the_conclusions_about_crossings_hold_in_the_tail():
    """At new crossings the transformer's worst seed is ahead of all convolutions, and a dense layer guesses."""
    record = pf.data.load_record("crossing_opponents")
    runs = [run for several in record["table"].values() for run in several] + [*record["turned"].values()]
    assert max(run["held_out"] for run in runs) < 0.9485 - 0.1
    assert min(run["asked"] for run in runs) > 0.97
    assert record["table"]["a dense layer on all rows, with coordinates"][0]["held_out"] < 0.12


def test_the_chapter_says_of_filling_and_towers_what_was_recorded():
    found, text = pf.data.load_record("filling"), words()
    first, second, third = (f"{each:.3f}" for each in found["errors"])
    rivals = found["opponents"]
    assert f"its error is {first}, {second} and {third}, against {rivals['regression']:.3f} of linear" in text
    assert f"and {rivals['neighbours']:.3f} of the neighbours. With five times the steps (seed 0) it is " in text
    assert f"it is {found['five times the steps']:.3f}, level with the neighbours" in text
    assert abs(found["five times the steps"] - rivals["neighbours"]) < 0.005
    assert f"the error after {filling.STEPS} steps is {found['sinusoids']:.3f}" in text
    found = pf.data.load_record("towers")
    english, german, french = (f"{100 * each:.1f}" for each in np.mean([run["new"] for run in found["runs"]], axis=0))
    assert f"English has {english} %, German {german} % and French {french} %" in text
    longer = [f"{100 * each:.1f}" for each in found["five times the steps"]["new"]]
    assert f"the three have {longer[0]}, {longer[1]} and {longer[2]} %" in text
    others = [f"{100 * run['new'][2]:.0f}" for run in found["other numbers"]]
    assert f"With two other sets of held-out numbers it has {others[0]} and {others[1]} %" in text
    assert all(min(run["new"]) == run["new"][2] for run in [*found["knobs"].values(), *found["other numbers"]])
    assert f"is right for {100 * found['told']:.1f} %" in text
