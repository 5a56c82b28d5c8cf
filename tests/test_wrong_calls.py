"""What a user gets wrong is answered by the package's own sentence: wrong calls made from the signatures say so.

Each public function, constructor and method is called with one argument wrong at a time: of another kind, out of range,
an array with an axis too many or of other numbers. A right call is taken from the examples in docstrings, or from the
table in `right_calls`; how they are spoiled and judged stands in `wrong_calls`.
"""

import sys
import types
from collections import Counter, defaultdict

import equinox as eqx
import jax
import jaxtyping
import matplotlib.pyplot as plt
import pytest
from example_calls import run_examples
from right_calls import UNANNOTATED, all_right_calls, stand_in_for_tensorboard
from wrong_calls import Answer, Wrong, bound, call, fits, is_own, parameters, public_callables, reached, wrong_calls

import plainformer as pf
from plainformer.checks import Natural, Positive, Rate

SHARE = 0.95

# What `fit` makes, and nobody else; what takes any function with its arguments; and tuples, which the losses look at.
NOT_CALLED = {"training.FitResult", "training.count_flops", "training.count_kept_bytes", "look", "see"}
NOT_CALLED |= {"attention.AttentionKernel"}  # which is abstract
NOT_CALLED |= {name for name in public_callables() if hasattr(reached(name), "_fields")}
# What a part of one's own may have, and the package alone calls.
HOOKS = {"add", "check", "made_for", "read", "reader", "sublayer", "token_scale"}

# Where shapes alone tell whether a call is right, so that nothing is compiled: in these rooms, and these.
OF_ARRAYS = {"attention", "blocks", "positions", "models"}
OF_NUMBERS = {"models.save_adapters", "models.load_adapters"}  # which are written, or read
OF_NUMBERS |= {"models.probe_accuracy", "models.control_labels"}  # which NumPy and scikit-learn compute
OF_NUMBERS |= {"models.plan", "models.Hardware", "models.this_machine"}  # which have no arrays
OF_ARRAYS_TOO = {"next_token_probabilities", "generation.sequence_log_probs"}
OF_ARRAYS_TOO |= {"translation_loss", "training.next_token_loss"}
NEEDS_A_NETWORK = {"data.multi30k"}

# Calls that are let through, and why.
PART = "a function or class of one's own may stand for a part"
MAY_PASS = {
    **{("Block", f"{part}{norm}"): PART for part in ("attention", "feed_forward") for norm in ("", "_norm")},
    ("BytePairEncoder.decode_stream", "ids"): "a string of bytes is a sequence of numbers",
    ("generation.penalise_repetition", "tokens"): "-1 stands where there is nothing",
    ("generation.penalise_counts", "tokens"): "-1 stands where there is nothing",
}


@pytest.fixture(scope="module")
def ordinary():
    """As for a user: no annotation is checked at run time but by the package itself, and JAX is as lenient as it is."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    jax.config.update("jax_disable_most_optimizations", True)
    with jax.numpy_dtype_promotion("standard"):
        yield
    jax.config.update("jax_disable_most_optimizations", False)
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(scope="module")
def examples(ordinary, tmp_path_factory):
    """What the examples in docstrings complain of, and the calls in them."""
    return run_examples(tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="module")
def table(ordinary, tmp_path_factory):
    """The right calls of the table, in a folder of its own, where nothing is downloaded."""

    def no_download(*_):
        raise AssertionError("a wrong call went as far as to download something")

    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("calls")
        patch.chdir(folder)
        patch.setitem(sys.modules, "tensorboard", types.ModuleType("tensorboard"))
        patch.setitem(sys.modules, "tensorboard.summary", stand_in_for_tensorboard())
        patch.setattr("plainformer.data.parallel.download", no_download)
        yield all_right_calls(folder)
    plt.close("all")


@pytest.fixture(scope="module")
def right(examples, table):
    """One right call of everything public."""
    _, calls = examples
    taken = {name: call for name, call in calls.items() if name.rpartition(".")[2] not in HOOKS}
    return {name: call for name, call in taken.items() if name not in NOT_CALLED} | table


@pytest.fixture(scope="module")
def answers(right) -> list[tuple[Wrong, Answer]]:
    """All wrong calls, and who answered them."""
    found = []
    for name, arguments in right.items():
        found += [(wrong, call(wrong, arguments)) for wrong in wrong_calls(name, arguments, UNANNOTATED)]
        plt.close("all")
    return found


def room_of(name: str) -> str:
    """The room of the function of this name."""
    return reached(name).__module__.split(".")[1]


def spelled(wrong: Wrong, answer: Answer) -> str:
    return f"{wrong.name}({wrong.argument}: {wrong.what}): {answer.words}"


def test_everything_public_has_a_right_call(right):
    public = {name for name, function in public_callables().items() if parameters(function)} - NOT_CALLED
    missing = {name for name in public - right.keys() if name.rpartition(".")[2] not in HOOKS}
    assert not missing, "Give these an example, or a right call in tests/helpers/right_calls.py."
    assert len(public) > 150


def test_examples_show_what_comes_of_them(examples):
    wrong, _ = examples
    assert not wrong, "\n".join(wrong.values())


@pytest.mark.gate
def test_right_calls_are_right(table):
    for name, arguments in table.items():
        function = bound(name, arguments)
        given = {key: value for key, value in arguments.items() if key != "self"}
        if name in NEEDS_A_NETWORK:
            continue
        if (room_of(name) in OF_ARRAYS or name in OF_ARRAYS_TOO) and name not in OF_NUMBERS:
            eqx.filter_eval_shape(function, **given)
        else:
            function(**given)


def test_wrong_calls_are_answered_by_the_package(answers):
    by_room = defaultdict(Counter)
    for wrong, answer in answers:
        by_room[room_of(wrong.name)][answer.by] += 1
    by_room["all"] = sum(by_room.values(), Counter())
    shares = {room: counts["own"] / counts.total() for room, counts in by_room.items()}
    print(f"{'room':12} {'wrong calls':>11} {'own':>6} {'foreign':>8} {'silent':>7}")
    for room, counts in by_room.items():
        print(f"{room:12} {counts.total():11} {shares[room]:6.1%} {counts['foreign']:8} {counts['silent']:7}")
    foreign = [spelled(*each) for each in answers if each[1].by == "foreign"]
    assert by_room["all"].total() > 10_000
    assert min(shares.values()) >= SHARE, "\n".join(foreign)


def test_wrong_calls_are_not_answered_by_silence(answers):
    silent = [each for each in answers if each[1].by == "silent"]
    unexplained = [spelled(*each) for each in silent if (each[0].name, each[0].argument) not in MAY_PASS]
    assert not unexplained, "\n".join(unexplained)
    assert MAY_PASS.keys() <= {(wrong.name, wrong.argument) for wrong, _ in silent}, "These are refused by now."


# --- the judge itself


def test_judge_tells_an_own_sentence_from_a_raw_error_and_from_silence(ordinary):
    def answer(name, argument, value, **right):
        return call(Wrong(name, argument, "", value), right).by

    ids = jax.numpy.arange(3)
    assert answer("one_hot", "vocab_size", 0, ids=ids) == "own"
    assert answer("one_hot", "vocab_size", 3, ids=ids) == "silent"
    assert answer("plots.np.zeros", "shape", "text") == "foreign"
    with pytest.raises(TypeError) as found:
        pf.data.split_text(3)
    assert is_own(found.value, "text")
    assert not is_own(TypeError("text is of type int; expected a string."), "text")  # raised by nobody
    with pytest.raises(AttributeError) as found:
        pf.TrainingConfig.__post_init__(None)  # an error of Python's, in a line of the package
    assert not is_own(found.value, "self")


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (Positive, [1, 7], [0, -1, 2.5, True, "3", None, [1]]),
        (Natural | None, [0, None], [-1, 2.5, True, 2j]),
        (Rate, [0, 0.5], [1, -1, float("nan"), "text", True]),
        (bool, [True], [0, 1, "text", None]),
        (float | None, [0.5, 3, None], [float("nan"), True, "text"]),
        (list[int], [[], [1]], [["text"], [None], (1,), 3]),
        (pf.DecoderConfig, [pf.DecoderConfig(5, 3)], [{}, dict, None, "text"]),
    ],
)
def test_annotations_say_which_values_are_wrong(kind, right, wrong):
    assert all(fits(value, kind) for value in right)
    assert not any(fits(value, kind) for value in wrong)
