"""Training: one loop that can be stopped, killed and resumed (chapter on the decoder)."""

import dataclasses
import inspect
import logging
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify
from jax.sharding import Mesh

from plainformer.checks import check_each, checked, native
from plainformer.training.arrays import Location, own_part
from plainformer.training.identity import identity_of
from plainformer.training.notices import warn
from plainformer.training.optimiser import TrainingConfig, chosen_optimiser
from plainformer.training.processes import check_same_start, gathered, spans_processes
from plainformer.training.run import Run
from plainformer.training.sharding import Layout, mesh_of
from plainformer.training.shared_run import run_on
from plainformer.training.step import check_takes, make_train_step, trained_of

Model = TypeVar("Model")


@dataclasses.dataclass(frozen=True)
class FitResult(Generic[Model]):
    """What `fit` returns, to be unpacked: the trained `model`, and `metrics`, one dictionary per step."""

    model: Model
    metrics: list[dict]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.model, self.metrics))


class TrainingInterrupted(KeyboardInterrupt):
    """Training was stopped by Ctrl-C; it says where it was saved, and carries the `result` so far, a `FitResult`."""

    def __init__(self, message: str, result: FitResult):
        super().__init__(message)
        self.result = result


@checked
def fit(
    model: Model,
    loss_function: Callable,
    batches: Callable[[int], Any] | Iterator,
    config: TrainingConfig,
    *,
    optimiser=None,
    schedule: Callable | None = None,
    trainable: Callable[[str], bool] | None = None,
    evaluate: Callable | None = None,
    callbacks: Sequence[Callable] = (),
    directory: Location | None = None,
    mesh: Mesh | None = None,
    sharding: dict[str, str] | None = None,
    progress: bool = True,
) -> FitResult[Model]:
    r"""Train a model.

    Args:
        model: any `eqx.Module`.
        loss_function: from model, batch and random key to a scalar, such as `next_token_loss`; or to a scalar and a
            dictionary of further numbers, which join the metrics.
        batches: from the number of steps done to the next batch, a tuple of arrays whose first axis is the batch, such
            as `pf.data.LabelledBatch`; the same number must always give the same batch, as with `random_windows`. Or an
            iterator of batches, of which no more are drawn than are used; a run that goes on draws those again that it
            has been trained on, and one that has no more batches ends early, with a warning.
        optimiser: one of optax, but for those that search along a line; `None` for `make_optimiser(config)`. A
            checkpoint holds what it remembers, not what it is: hand over the same when a run goes on.
        schedule: from the number of steps done to the learning rate; `None` for `learning_rate_schedule(config)`. With
            an `optimiser`, which has its own, it is only written into the metrics; nor do `clip_norm`, `weight_decay`
            and the betas of `config` reach such an optimiser, and they may be others when a run goes on.
        trainable: from the place of an array in the model, such as `"stack.final_norm.scale"`, to whether it is
            trained; `None` for all. What is not, is not saved in checkpoints either.
        evaluate: from model to a loss on fixed data that the model is not trained on, or to a dictionary of numbers. It
            comes after the last step, too; where an iterator of batches has ended early, after the callbacks.
        callbacks: functions of a step's metrics and its number, called after every step, such as `log_to_tensorboard`
            makes; they come after saving, so that an error of theirs costs no step that was to be saved. One that takes
            a third argument gets the model, whose numbers the next step writes over. One that returns `True` ends the
            run after this step.
        directory: where to save checkpoints and `metrics.csv`. If it holds checkpoints of this very run, with the same
            model, configuration and first batch, training goes on from the newest, and ends as if it had never been
            interrupted, to the last bit on the same number of processor cores; the weights of `model` do not matter
            then. If the newest is damaged, it goes on from the newest that is not, and warns. A larger `num_steps` lets
            a run go on beyond its end, at the learning rate that the schedule has there, without a second warm-up:
            `warmup_steps` that is `None` stays what it was when the run began. Whenever `validation_loss` is lower than
            before, the step is saved, too; `load_best` returns the model of the lowest. `None` saves nothing.
        mesh: the devices to train on, as `jax.make_mesh((4, 2), ("data", "model"))` makes it of eight; `None` for one.
            A run may go on on another mesh. Of several processes, see the note.
        sharding: what is cut (sharded) over which axis of the mesh, by names, such as `pf.training.FULLY_SHARDED`;
            what is not named is whole on each device (replicated). `None` for `DATA` over an axis `"data"` and `TENSOR`
            over an axis `"model"`.

    Returns:
        The trained model and the metrics of every step: `step` (steps done), `loss` (on its batch, before it),
        `gradient_norm` (before clipping), `learning_rate` if a schedule says it and, where evaluated, `validation_loss`
        (after it).

    Raises:
        TrainingInterrupted: on Ctrl-C, after the step and after saving; a second Ctrl-C stops at once.
        FloatingPointError: as soon as a loss or a gradient is NaN or infinite.
        ValueError: if a checkpoint is of another run.
        BlockingIOError: if another process trains into the directory.
        OSError: if it cannot be written, found out before the first step.

    Note:
        Several processes, on one machine or on many, train together where each calls `jax.distributed.initialize` first
        and then `fit` with a mesh of the devices of all, as the README's script does. `batches` is the same function in
        each, and each takes its own rows of every batch; or a process makes its own rows only, by
        `jax.make_array_from_process_local_data`. The first process alone shows progress, calls `callbacks` and writes
        `metrics.csv`; all call `evaluate`. The `directory` is one that all see: there each saves what it holds, by
        orbax, and any number of processes, or one, may go on from it. When a process is killed, all others say which,
        and end with exit status 1; before training has begun, and without a `directory`, JAX itself ends them when its
        `initialization_timeout` or `heartbeat_timeout_seconds` have passed, less than a minute in the script.

        On Linux training is faster with `MALLOC_TRIM_THRESHOLD_=4294967296 MALLOC_MMAP_THRESHOLD_=1073741824` in the
        environment that Python starts in: memory that a step has freed stays for the next one. A step of an
        encoder–decoder of width 128 took 110 ms of processor time with it, and 161 without.

    Example:
        A small decoder learns a text by heart.

        >>> text = "to be or not to be, " * 9
        >>> vocabulary = pf.Vocabulary(text)
        >>> stack = pf.StackConfig(d_model=8, num_layers=1, num_heads=2)
        >>> decoder = pf.Decoder(pf.DecoderConfig(len(vocabulary), 8, stack=stack), key=jax.random.key(0))
        >>> batches = pf.data.random_windows(vocabulary.encode(text), seq_len=8, batch_size=4)
        >>> config = pf.TrainingConfig(num_steps=100, learning_rate=0.01, warmup_steps=10)
        >>> decoder, metrics = pf.fit(decoder, pf.training.next_token_loss, batches, config, progress=False)
        >>> metrics[0]["loss"] > 2, metrics[-1]["loss"] < 1
        (True, True)
    """
    from tqdm import tqdm  # not tqdm.auto, which warns in notebooks without widgets

    _check_arguments(model, loss_function, batches, config, evaluate, callbacks)
    _check_start(mesh, model, config)
    layout, together, ended = Layout(mesh, sharding, model), spans_processes(mesh), False
    params, static = layout.place(eqx.partition(jax.tree.map(native, model), trained_of(model, trainable)))
    batch_at, end, own = _numbered(batches, together), config.num_steps, {"optimiser": optimiser, "schedule": schedule}
    identity = {} if directory is None else identity_of(model, static, batch_at(0), config, **own)
    state = layout.place(_copied((params, _first_memory(chosen_optimiser(config, **own)[0], params))))
    with run_on(mesh, directory, identity) as run, _sigint_flag() as interrupted:
        state, config = run.resume(state, config)
        train_step = make_train_step(loss_function, static, config, **own, mesh=mesh, sharding=sharding)
        with tqdm(initial=len(run.metrics), total=end, disable=not (progress and run.speaks), unit="step") as bar:
            for done in range(len(run.metrics) + 1, end + 1):
                if run.has_stalled(config.patience):
                    break
                if (batch := batch_at(done - 1)) is None:
                    warn(f"There were batches for {done - 1} steps only; expected {end}.")
                    if evaluate is not None and (done - 1) % config.evaluate_every:  # it comes after the last step, too
                        _evaluate(evaluate, run, state, static, config)
                    break
                with _errors_of_the_loss(loss_function, model, batch):
                    *state, measured = train_step(*state, layout.place_batch(batch), done - 1)
                    run.note(done, measured)
                if evaluate is not None and (done % config.evaluate_every == 0 or done == end):
                    _evaluate(evaluate, run, state, static, config)
                bar.set_postfix(loss=f"{measured['loss']:.3f}", tokens_per_s=_rate(bar, batch), refresh=False)
                bar.update()
                is_due = done == end or done % config.checkpoint_every == 0 or run.is_best
                if run.agreed(_why_to_stop(interrupted, ended)) or is_due:
                    run.save(state, config.max_to_keep)
                if run.speaks:
                    ended |= _call_back(callbacks, run.metrics[-1], done, state, static)
                if run.agreed(_why_to_stop(interrupted, ended)):
                    break
        run.save(state, config.max_to_keep)
    result = FitResult(eqx.combine(state[0], static), run.metrics)
    if run.agreed(_why_to_stop(interrupted, ended)) == INTERRUPTED:  # also while the last step was saved
        raise TrainingInterrupted(run.where_it_stopped(end), result)
    return result


ENDED, INTERRUPTED = 1, 2  # why a run stops before its last step


def _why_to_stop(interrupted: threading.Event, ended: bool) -> int:
    """The reason why this process would stop, 0 for none."""
    return INTERRUPTED if interrupted.is_set() else ENDED if ended else 0


def _call_back(callbacks: Sequence[Callable], metrics: dict, done: int, state, static) -> bool:
    """Call each with what it takes; return whether one of them ends the run."""

    def called(callback: Callable):
        model = [eqx.combine(state[0], static)] if _takes_model(callback) else []
        return callback(dict(metrics), done, *model)

    said = [called(callback) for callback in callbacks]
    return any(isinstance(each, bool | np.bool_ | jax.Array) and np.ndim(each) == 0 and bool(each) for each in said)


def _takes_model(callback: Callable) -> bool:
    """Whether a callback wants the model, too, as it takes three arguments and not two."""
    with suppress(TypeError, ValueError):  # the latter where nobody knows what it takes
        inspect.signature(callback).bind("metrics", "step", "model")
        with suppress(TypeError):
            inspect.signature(callback).bind("metrics", "step")
            return False
        return True
    return False


def _evaluate(evaluate: Callable, run: Run, state, static, config: TrainingConfig) -> None:
    """Note what is found of a copy: the next step writes over the weights, and whoever evaluates may keep the model."""
    copy = eqx.combine(jax.tree.map(jnp.copy, state[0]), static)
    with run.saving_at_an_error(state, config.max_to_keep):
        run.note_evaluation(evaluate(copy))
        if config.patience is not None and "validation_loss" not in run.metrics[-1]:
            raise ValueError(f"patience is {config.patience}, and evaluate returned no 'validation_loss' to wait for.")


def _copied(state):
    """The same numbers elsewhere: a step writes its results where its arguments lay, and the caller's model stays.

    Each gets a type that is said, as what a step returns has; or the second step would be compiled anew after a
    `jnp.log(0.1)`, which has none of its own.
    """
    return jax.tree.map(lambda leaf: jnp.array(leaf, dtype=leaf.dtype), state)


def _first_memory(optimiser, params):
    """What the optimiser remembers before the first step."""
    try:
        return optimiser.init(params)
    except (TypeError, ValueError) as error:
        if not callable(params):
            raise
        hint = "If it holds labels or a mask in the form of a model, optax calls that: hand over lambda params: labels."
        raise type(error)(f"The optimiser cannot begin: {error}. {hint}") from error


def _check_arguments(model, loss_function, batches, config, evaluate, callbacks) -> None:
    if isinstance(model, type) or not jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array)):
        raise TypeError(
            f"model is {getattr(model, '__name__', f'a {type(model).__name__}')}, which has nothing to train; expected "
            "an object such as Decoder(…), first, then loss_function and batches."
        )
    hint = "The loss comes second, before the batches; give what else it takes by functools.partial."
    check_takes(loss_function, "loss_function", "model", "batch", "key", hint=hint)
    if not callable(batches) and not isinstance(batches, Iterator):
        hint = "For a list of batches, pass iter(…); for one and the same, lambda step: batch."
        expected = "expected a function from the number of steps done to a batch, or an iterator of batches"
        raise TypeError(f"batches is a {type(batches).__name__}; {expected}. {hint}")
    if not isinstance(callbacks, Sequence):
        raise TypeError(f"callbacks is a {type(callbacks).__name__}; expected a list of functions: pass [callback].")
    for number, callback in enumerate(callbacks):
        check_each(Callable, **{f"callbacks[{number}]": callback})
        if not _takes_model(callback):
            check_takes(callback, f"callbacks[{number}]", "metrics", "step")
    if evaluate is not None:
        check_takes(evaluate, "evaluate", "model", hint="Try lambda model: corpus_loss(model, windows).")
    elif config.patience is not None:
        raise ValueError(f"patience is {config.patience}, and nothing is evaluated; expected evaluate=…, too.")


def _check_start(mesh: Mesh | None, model, config: TrainingConfig) -> None:
    """Raise `ValueError` for a model on several devices that are not said, or several processes with several models."""
    if mesh is None and (there := mesh_of(model)) is not None:
        raise ValueError(f"model lies on {there.size} devices of a mesh, and mesh is None; expected mesh=…, too.")
    check_same_start(mesh, model, config)


def _numbered(batches, together: bool) -> Callable[[int], Any]:
    """The function from a step to its batch; for an iterator, `None` beyond its end, and for no earlier step again.

    Iterators of several processes, `together`, end with the shortest.
    """
    if callable(batches):
        return batches
    drawn, batch = 0, None

    def batch_at(step: int):
        nonlocal drawn, batch
        while drawn <= step:
            drawn, batch = drawn + 1, next(batches, None)
            if together and any(gathered(batch is None)):
                batch = None
        return batch

    return batch_at


@contextmanager
def _errors_of_the_loss(loss_function: Callable, model, batch) -> Iterator[None]:
    """Where a compiled step fails, as by an id out of range, call the loss uncompiled: its error names the place.

    First without the numbers of the model, which the ranges of ids do not ask for: that computes nothing.
    """
    log = logging.getLogger("jax")  # where JAX would print the same error
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    except (jax.errors.JaxRuntimeError, checkify.JaxRuntimeError, ValueError):  # the last by JAX's faster way of a call
        own = jax.tree.map(own_part, batch)
        try:
            eqx.filter_eval_shape(lambda model: loss_function(model, own, jax.random.key(0)), model)
            loss_function(model, own, jax.random.key(0))
        except (ValueError, TypeError) as plain_error:
            raise plain_error from None
        raise
    finally:
        log.setLevel(level)


def _rate(bar, batch) -> str:
    """Tokens, or other entries of the first array in the batch, per second; the mean as long as the bar knows none."""
    if bar.disable:
        return ""
    rate = bar.format_dict["rate"] or (bar.n + 1 - bar.initial) / (bar.format_dict["elapsed"] or 1)
    return f"{rate * jax.tree.leaves(batch)[0].size:,.0f}"


@contextmanager
def _sigint_flag() -> Iterator[threading.Event]:
    """Let Ctrl-C set a flag instead of breaking in, so that a step or a file is never cut in two; twice breaks in."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event  # only the main thread may say what a signal does
        return

    def note(number, frame):
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)
