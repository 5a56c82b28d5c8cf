"""Pictures of what models return and how they were trained."""

import dataclasses
from types import SimpleNamespace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
import tiny_run
from toy_models import drawn

from plainformer.models.config import StackConfig
from plainformer.models.decoder import Decoder, DecoderConfig
from plainformer.models.planning import plan
from plainformer.plots import (
    attention_arcs,
    attention_map,
    confusion_matrix,
    device_map,
    head_grid,
    logit_lens,
    loss_curve,
    memory_bars,
)
from plainformer.tokens.vocabulary import Vocabulary
from plainformer.training.sharding import FULLY_SHARDED

WEIGHTS = jnp.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
HEADER = "step,loss,gradient_norm,learning_rate,validation_loss\n"
ROWS = [{"step": 1, "loss": 2.5}, {"step": 2, "loss": 2.0, "validation_loss": 2.25}, {"step": 3, "loss": 1.5}]
TEXT = "a $b$\nc"
TARGETS, PREDICTIONS = [0, 0, 1, 1, 1], [0, 1, 1, 1, 0]


class Read(NamedTuple):
    """A text as a decoder reads it."""

    vocabulary: Vocabulary
    ids: jax.Array
    weights: jax.Array
    logits: list[jax.Array]
    said: jax.Array


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def read():
    """What a decoder that was never trained returns for a text."""
    vocabulary = Vocabulary.from_characters(TEXT)
    stack = StackConfig(d_model=12, num_layers=2, num_heads=3, d_ff=8)
    model, ids = drawn(Decoder, DecoderConfig(len(vocabulary), 9, stack=stack)), jnp.array(vocabulary.encode(TEXT))

    @eqx.filter_jit  # one program, which compiles sooner than its parts
    def returned(model):
        logits = [model.logits(x) for x in model.residual_stream(ids)]
        return model.attention_weights(ids), logits, model(ids)

    return Read(vocabulary, ids, *returned(model))


def labels_of(axis):
    """What is written at the ticks of an axis."""
    return [label.get_text() for label in axis.get_ticklabels()]


def overlapping(texts):
    """Pairs of texts that cover each other, once they are drawn."""
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    return [(n, m) for m in range(len(boxes)) for n in range(m) if boxes[n].overlaps(boxes[m])]


def test_attention_map_draws_queries_as_rows_and_keys_as_columns():
    ax = attention_map(WEIGHTS, ["a", "b"], ["x", "y", "z"], title="head")
    np.testing.assert_array_equal(ax.images[0].get_array(), np.asarray(WEIGHTS))
    assert labels_of(ax.yaxis) == ["a", "b"]
    assert labels_of(ax.xaxis) == ["x", "y", "z"]
    assert (ax.get_ylabel(), ax.get_xlabel(), ax.get_title()) == ("query", "key", "head")
    written = {text.get_position(): text.get_text() for text in ax.texts}
    assert written[2, 1] == "0.50"  # (column, row)
    assert written[0, 0] == "0.90"


def test_labels_make_visible_what_is_not():
    ax = attention_map(jnp.eye(6), [" ", "\n", "$x_$", "a | b", "\t\x00", "naïve"])
    assert labels_of(ax.xaxis) == ["␣", "\\n", "$x_$", "a | b", "\\t\\x00", "naïve"]
    ax.figure.canvas.draw()


def one_head(weights, tokens):
    """The first map of a grid of two by two."""
    return head_grid(np.array([[weights] * 2] * 2), tokens)[1, 0]


@pytest.mark.parametrize("draw", [attention_map, attention_arcs, one_head])
def test_labels_do_not_overlap(draw):
    ax = draw(np.eye(40), ["misunderstood"] * 40)
    ax.figure.canvas.draw()
    for axis in (ax.xaxis, ax.yaxis):
        assert not overlapping(axis.get_ticklabels())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: attention_map(jnp.ones((3, 2, 2))), r"weights has shape \(3, 2, 2\).*weights\[0\]"),
        (lambda: attention_map(WEIGHTS, ["a", "b", "c"]), "rows holds 3 labels"),
        (lambda: attention_map(WEIGHTS, None, ["x", "y"]), "columns holds 2 labels"),
        (lambda: attention_map(WEIGHTS.at[0, 1].set(jnp.nan)), r"weights\[0, 1\] is nan"),
        (lambda: attention_map(WEIGHTS.at[1, 0].set(-2)), r"weights\[1, 0\] is -2.0"),
        (lambda: attention_map(WEIGHTS.at[1, 2].set(1.5)), r"weights\[1, 2\] is 1.5"),
        (lambda: attention_map(jnp.ones((0, 3))), r"weights has shape \(0, 3\)"),
        (lambda: head_grid(WEIGHTS), r"weights has shape \(2, 3\)"),
        (lambda: head_grid(jnp.ones((1, 1, 2, 2)), "a"), "rows holds 1 labels"),
        (lambda: head_grid(jnp.eye(3).at[1, 1].set(jnp.nan)[None, None]), r"weights\[0, 0, 1, 1\] is nan"),
        (lambda: attention_arcs(WEIGHTS), r"weights has shape \(2, 3\)"),
        (lambda: attention_arcs(jnp.eye(3), ["a", "b"]), "tokens holds 2 labels"),
        (lambda: attention_arcs(jnp.eye(3).at[2, 2].set(jnp.nan)), r"weights\[2, 2\] is nan"),
        (lambda: attention_arcs(jnp.eye(3), threshold=1.5), "threshold is 1.5"),
        (lambda: confusion_matrix(TARGETS, PREDICTIONS[:4]), "targets has shape"),
        (
            lambda: confusion_matrix([0, 0, 1, 1, 2], PREDICTIONS, ["no", "yes"]),
            r"targets\[4\] is 2; .* 0 to 1, as there are 2",
        ),
        (
            lambda: confusion_matrix(TARGETS, [-1, 0, 0, 0, 0]),
            r"predictions\[0\] is -1; expected 0 to 999, unless `names`",
        ),
        (lambda: confusion_matrix([0, 10**9], [0, 0]), r"targets\[1\] is 1000000000; expected 0 to 999"),
        (lambda: confusion_matrix(TARGETS, np.zeros((5, 2)), list("abc")), "predictions has shape"),
        (lambda: confusion_matrix(TARGETS, np.full((5, 2), np.nan)), r"predictions\[0, 0\] is nan"),
        (lambda: confusion_matrix([], []), r"predictions has shape \(0,\)"),
    ],
)
def test_maps_refuse_what_cannot_be_drawn(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call",
    [
        lambda: attention_map([[1.0], [0.5, 0.5]]),
        lambda: attention_map(WEIGHTS, ax=plt.subplots(1, 2)[1]),
        lambda: attention_map(WEIGHTS, {"a", "b"}),
        lambda: confusion_matrix(TARGETS, np.array(PREDICTIONS) / 2),
        lambda: confusion_matrix(["no", "yes"], [0, 1]),
        lambda: confusion_matrix(TARGETS, PREDICTIONS, "ab"),
        lambda: loss_curve([2.5, 2.0]),
        lambda: loss_curve(ROWS, "loss"),
    ],
)
def test_plots_refuse_other_kinds(call):
    with pytest.raises(TypeError, match=r"is|holds"):
        call()


def test_head_grid_draws_a_decoders_own_weights_one_map_per_layer_and_head(read):
    axes = head_grid(read.weights, TEXT, title="all heads")
    assert axes.shape == (2, 3)
    for (layer, head), ax in np.ndenumerate(axes):
        np.testing.assert_array_equal(ax.images[0].get_array(), np.asarray(read.weights[layer, head]))
        assert ax.images[0].get_clim() == (0, 1)
        assert ax.get_title() == f"layer {layer}, head {head}"
    shown = ["a", "␣", "$", "b", "$", "\\n", "c"]
    assert [labels_of(ax.yaxis) for ax in axes[1]] == [shown, [], []]
    assert [labels_of(ax.xaxis) for ax in axes[:, 1]] == [[], shown]
    assert axes[0, 0].figure.get_suptitle() == "all heads"


def test_figures_grow_evenly_with_what_they_draw():
    first, second = np.diff([head_grid(np.ones((heads, 2, 2)))[0].figure.get_figwidth() for heads in (1, 2, 3)])
    assert first == pytest.approx(second)
    assert first > 1
    deep = logit_lens(np.zeros((49, 1, 2)), [0], Vocabulary("ab"))  # as deep as GPT-2 XL
    assert 10 < deep.figure.get_figheight() < 30


def test_the_scale_of_a_grid_is_as_wide_for_many_layers_as_for_one():
    figures = [head_grid(np.ones((layers, 1, 2, 2)))[0, 0].figure for layers in (1, 3)]
    for figure in figures:
        figure.canvas.draw()
    one, three = (figure.axes[-1].get_window_extent().width for figure in figures)
    assert 0.5 < three / one < 2


def test_attention_arcs_draw_weights_above_the_threshold_as_wide_as_they_are():
    weights = jnp.array([[0.7, 0.0, 0.3], [0.8, 0.2, 0.0], [0.6, 0.04, 0.36]])
    ax = attention_arcs(weights, ["a", " ", "c"], title="head")
    arcs = {(arc.center, arc.width, arc.theta1): arc.get_linewidth() for arc in ax.patches}
    above, below = (
        0,
        180,
    )  # an arc above the line looks back, one below it ahead; (1, 0) is centred between tokens 0 and 2
    expected = {((1, 0), 2, below): 0.3, ((0.5, 0), 1, above): 0.8, ((1, 0), 2, above): 0.6}
    assert arcs.keys() == expected.keys()
    assert all(arcs[place] == pytest.approx(4 * expected[place]) for place in arcs)
    sides = {arc.get_edgecolor()[:3]: arc.theta1 for arc in ax.patches}
    assert sorted(sides.values()) == [above, below]  # one colour for each
    assert np.mean(ax.get_xlim()) == pytest.approx(1)  # the token in the middle stands in the middle
    dots = ax.collections[0]
    np.testing.assert_array_equal(dots.get_offsets(), [[0, 0], [1, 0], [2, 0]])
    np.testing.assert_allclose(dots.get_sizes(), 60 * np.array([0.7, 0.2, 0.36]), rtol=1e-6)
    assert labels_of(ax.xaxis) == ["a", "␣", "c"]
    assert ax.get_title() == "head"
    assert len(attention_arcs(weights, threshold=0.7).patches) == 1
    assert not attention_arcs(jnp.full((2, 2), 0.5), threshold=0.5).patches


def test_attention_arcs_stay_within_the_axes_and_hold_a_decoders_own_weights(read):
    weights = read.weights[1, 2]
    ax = attention_arcs(weights, TEXT, threshold=0.0)
    assert len(ax.patches) == np.count_nonzero(np.tril(weights, -1)) > 0
    assert ax.get_ylim()[1] > max(arc.height / 2 for arc in ax.patches)
    assert ax.get_ylim()[0] == -0.5  # nobody looks ahead


def test_logit_lens_names_the_likeliest_token_and_its_probability_at_each_depth_and_place():
    vocabulary = Vocabulary([" ", "$", "\n"])  # in the order of their code points: line end, space, dollar
    probabilities = np.array([[[0.5, 0.2, 0.3], [0.1, 0.8, 0.1]], [[0.125, 0.125, 0.75], [0.25, 0.5, 0.25]]])
    ax = logit_lens(list(np.log(probabilities) + 7), [2, 0], vocabulary, title="lens")
    written = {(place, round(height)): [] for place in (0, 1) for height in (0, 1)}
    for text in ax.texts:
        place, height = text.get_position()
        written[place, round(height)].append(text.get_text())
    # (place, depth); what enters the first block is the lowest row
    assert written == {(0, 0): ["\\n", "0.50"], (1, 0): ["␣", "0.80"], (0, 1): ["$", "0.75"], (1, 1): ["␣", "0.50"]}
    np.testing.assert_allclose(ax.images[0].get_array(), probabilities.max(-1), rtol=1e-6)
    assert ax.images[0].origin == "lower"
    assert (labels_of(ax.xaxis), labels_of(ax.yaxis)) == (["$", "\\n"], ["0", "1"])
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("token read", "blocks passed", "lens")


def test_logit_lens_ends_with_what_a_decoder_says(read, tmp_path):
    ax = logit_lens(read.logits, read.ids, read.vocabulary)
    probabilities = jax.nn.softmax(read.said, axis=-1)
    assert len(ax.images[0].get_array()) == 3
    np.testing.assert_allclose(ax.images[0].get_array()[-1], probabilities.max(-1), rtol=1e-5)
    said = [text.get_text() for text in ax.texts if text.get_position()[1] > 1.5][::2]
    names = {" ": "␣", "\n": "\\n"}
    assert said == [names.get(token, token) for token in read.vocabulary.decode(probabilities.argmax(-1))]
    ax.figure.savefig(tmp_path / "lens.png")
    assert not overlapping(ax.texts)


def test_logit_lens_is_legible_where_names_are_long_and_tokens_many():
    words = Vocabulary.from_words("the misunderstood of")
    logits = np.random.default_rng(3).normal(size=(2, 40, 3))
    ax = logit_lens(logits, [0, 1, 2, 0] * 10, words)
    ax.figure.canvas.draw()
    assert not overlapping(ax.texts)
    assert not overlapping(ax.xaxis.get_ticklabels())


def test_logit_lens_bad_input(read):
    vocabulary, ids, logits = read.vocabulary, read.ids, read.logits
    with pytest.raises(ValueError, match="ids has shape"):
        logit_lens(logits, ids[None], vocabulary)
    with pytest.raises(ValueError, match=r"logits has shape \(3, 7, 6\); expected \(depths, seq=4"):
        logit_lens(logits, ids[:4], vocabulary)
    with pytest.raises(ValueError, match="vocab_size=9"):
        logit_lens(logits, ids, Vocabulary("abcdefghi"))
    with pytest.raises(ValueError, match=r"logits\[1, 2, 3\] is nan"):
        logit_lens(jnp.stack(logits).at[1, 2, 3].set(jnp.nan), ids, vocabulary)


def points_of(line):
    """The steps and the numbers of a curve."""
    return line.get_label(), *(numbers.tolist() for numbers in line.get_data())


def test_loss_curve_draws_losses_at_their_steps():
    ax = loss_curve(ROWS, title="run")
    assert [points_of(line) for line in ax.lines] == [
        ("loss", [1, 2, 3], [2.5, 2.0, 1.5]),
        ("validation_loss", [2], [2.25]),
    ]
    assert [line.get_marker() for line in ax.lines] == ["", "o"]  # a single point shows by its dot
    assert (ax.get_xlabel(), ax.get_title()) == ("step", "run")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["loss", "validation_loss"]
    (long,) = loss_curve([{"step": step, "loss": 2.5} for step in range(300)]).lines
    assert not long.get_marker()


@pytest.mark.parametrize("text", ["$$", r"a $\frac{1$ b", "costs $5 and $6", "_baseline"])
def test_titles_and_labels_are_shown_as_given(text, read):
    ax = loss_curve(ROWS, title=text, label=text)
    assert [label.get_text() for label in ax.get_legend().get_texts()] == [f"{text} loss", f"{text} validation_loss"]
    ax.figure.canvas.draw()  # which raises where a formula is meant, and is none
    assert not ax.title.get_parse_math()
    assert not any(label.get_parse_math() for label in ax.get_legend().get_texts())
    head_grid(np.full((2, 2, 3, 3), 1 / 3), title=text)[0, 0].figure.canvas.draw()


def test_loss_curve_is_the_same_of_a_result_its_list_its_file_and_its_folder(tmp_path):
    result = tiny_run.run(evaluate=tiny_run.validation, directory=tmp_path)
    expected = [points_of(line) for line in loss_curve(result).lines]
    assert expected[0][1:] == (list(range(1, 13)), [row["loss"] for row in result.metrics])
    assert expected[1][1] == [5, 10, 12]
    for source in (result.metrics, tmp_path, str(tmp_path), tmp_path / "metrics.csv"):
        assert [points_of(line) for line in loss_curve(source).lines] == expected
    (rate,) = loss_curve(tmp_path, ["learning_rate"]).lines
    assert points_of(rate)[2] == [row["learning_rate"] for row in result.metrics]


def test_loss_curve_draws_any_column_and_several_runs_in_one_picture(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("step,note,accuracy\n1,warm-up,\n\n2,,0.5\n3,,0.75\n")
    ax = loss_curve(ROWS, ["loss"], label="first", title="two runs")
    assert loss_curve(path, ["accuracy"], ax=ax, label="second") is ax
    assert [points_of(line) for line in ax.lines][1] == ("second accuracy", [2, 3], [0.5, 0.75])
    assert ax.get_title() == "two runs"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["first loss", "second accuracy"]


def test_loss_curve_says_where_a_loss_was_not_finite(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text(HEADER + "1,2.5,1.0,0.1,\n2,inf,1.0,0.1,\n3,nan,1.0,0.1,\n")
    curve, end = loss_curve(path).lines
    assert end.get_label() == "loss is inf at step 2"
    assert end.get_xdata() == [2, 2]
    assert curve.get_ydata()[0] == 2.5
    loss_curve([{"step": 1, "loss": jnp.array(jnp.nan)}]).figure.savefig(tmp_path / "curve.png")


def test_loss_curve_refuses_what_is_missing(tmp_path):
    with pytest.raises(ValueError, match="no number in a column 'accuracy'"):
        loss_curve(ROWS, ["loss", "accuracy"])
    with pytest.raises(ValueError, match=r"no number in a column 'validation_loss'"):
        loss_curve(ROWS[:1], ["validation_loss"])
    with pytest.raises(ValueError, match=r"metrics, row 1"):
        loss_curve([{"loss": 2.5}])
    with pytest.raises(FileNotFoundError, match=r"There is no file"):
        loss_curve(tmp_path)
    for text in ("", "\n", HEADER):
        (tmp_path / "metrics.csv").write_text(text)
        with pytest.raises(ValueError, match="metrics holds no steps"):
            loss_curve(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "1,2.5,1.0,0.1,\n2,2.", r"metrics\.csv, row 2, has 2 columns"),
        (HEADER + "1,x,1.0,0.1,\n", "row 1: step is '1' and loss is 'x'"),
        (HEADER + '1,"2.5', r"metrics\.csv, line 2"),
        ("a;b\n1;2\n", "no number in a column 'loss'"),
    ],
)
def test_loss_curve_refuses_damaged_files(tmp_path, text, message):
    (tmp_path / "metrics.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        loss_curve(tmp_path)


def counts_of(ax):
    """The numbers in the cells, and the array whose colours they stand on, which must be the same."""
    counts = np.asarray(ax.images[0].get_array())
    assert [text.get_text() for text in ax.texts] == [str(count) for count in counts.ravel()]
    return counts.tolist()


def test_confusion_matrix_counts_true_classes_as_rows_and_predicted_ones_as_columns():
    ax = confusion_matrix(TARGETS, PREDICTIONS, ["$no$", "yes"], title="test")
    assert counts_of(ax) == [[1, 1], [1, 2]]
    assert labels_of(ax.xaxis) == labels_of(ax.yaxis) == ["$no$", "yes"]
    assert (ax.get_ylabel(), ax.get_xlabel(), ax.get_title()) == ("true class", "predicted class", "test")
    ax.figure.canvas.draw()
    _, given = plt.subplots()
    assert confusion_matrix([0, 2], [0, 1], ax=given) is given
    assert counts_of(given) == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]


def test_confusion_matrix_takes_a_classifiers_own_logits():
    logits = np.random.default_rng(5).normal(size=(30, 4)).astype(np.float32)
    logits[:, 3] = -9  # a class that is never chosen has a column all the same
    targets = jnp.arange(30) % 3
    counts = counts_of(confusion_matrix(targets, jnp.asarray(logits)))
    assert counts == counts_of(confusion_matrix(targets, logits.argmax(1), list("abcd")))
    assert np.sum(counts, axis=1).tolist() == [10, 10, 10, 0]
    assert np.sum(counts, axis=0)[3] == 0


@pytest.mark.parametrize(
    ("array", "error", "said"),
    [
        (np.ones((2, 2)), TypeError, "array is of type ndarray; expected an array of JAX"),
        (jnp.ones((2, 2, 2)), ValueError, r"array has shape \(2, 2, 2\); expected one axis or two"),
    ],
)
def test_device_map_refuses_what_it_cannot_draw(array, error, said):
    with pytest.raises(error, match=said):
        device_map(array)


class Device(NamedTuple):
    """A device that is not there."""

    id: int


class Pieces(jax.sharding.Sharding):
    """Four pieces of a matrix, each on a device of its own."""

    def devices_indices_map(self, shape):
        places = [(slice(*rows), slice(*columns)) for rows in ((0, 3), (3, 6)) for columns in ((0, 3), (3, 10))]
        return {Device(number): place for number, place in enumerate(places)}


def test_device_map_names_a_device_in_the_middle_of_its_box():
    ax = device_map(SimpleNamespace(shape=(6, 10), sharding=Pieces()))
    assert [text.get_text() for text in ax.texts] == list("0123")
    assert [text.get_position() for text in ax.texts] == [tuple(box.get_center()) for box in ax.patches]


@pytest.mark.parametrize(("times", "limits"), [(1.2, [1.2]), (2.0, [])])
def test_memory_bars_show_what_a_device_can_hold_where_that_is_near(times, limits):
    nothing = dict.fromkeys(("gradients", "moments", "gathered", "activations", "early_gradients"), 0)
    found = plan(DecoderConfig(40, 16), {"data": 1}, "H100", batch_size=8)
    machine = dataclasses.replace(found.hardware, memory=times * 10**9)
    ax = memory_bars(dataclasses.replace(found, parameters=10**9, hardware=machine, **nothing))
    assert [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"] == limits
    assert ax.get_xlabel() == "GB"
    assert ax.get_xlim()[1] < 2  # the bar is longer than half of the picture


def test_memory_bars_are_as_long_as_what_a_device_holds():
    config = DecoderConfig(40, 16, stack=StackConfig(d_model=16, num_layers=2, num_heads=2))
    found = {n: plan(config, {"data": n}, "H100", batch_size=8, sharding=FULLY_SHARDED) for n in (1, 8)}
    ax = memory_bars({f"one of {n}": each for n, each in found.items()})
    parts = ("parameters", "gradients", "moments", "gathered", "activations")
    for row, each in enumerate(found.values()):
        widths = [bars.patches[row].get_width() for bars in ax.containers]
        np.testing.assert_allclose(widths, [getattr(each, part) for part in parts], rtol=1e-6)
        assert ax.get_lines()[row].get_xdata()[0] == pytest.approx(each.memory)
    assert labels_of(ax.yaxis) == ["one of 1", "one of 8"]
    alone = memory_bars(found[1])  # which gathers nothing
    for bars in alone.containers:
        [same] = [others for others in ax.containers if others.get_label() == bars.get_label()]
        assert bars.patches[0].get_facecolor() == same.patches[0].get_facecolor()
    assert len(alone.containers) == 4
    with pytest.raises(TypeError, match="plans is of type list; expected what"):
        memory_bars(list(found.values()))
    with pytest.raises(TypeError, match="plans is of type Hardware; expected what"):
        memory_bars(found[1].hardware)
