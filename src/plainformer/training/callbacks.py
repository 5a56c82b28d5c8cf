"""Callbacks for `fit` that hand its metrics to other programs, each imported only when it is used (chapter 06)."""

from collections.abc import Callable

from plainformer.checks import checked
from plainformer.training.saving import Location


@checked
def log_to_tensorboard(directory: Location) -> Callable[[dict, int], None]:
    r"""Return a callback that writes a step's metrics where TensorBoard finds them: `tensorboard --logdir DIRECTORY`.

    **Raises** `ImportError` if the package tensorboard is not installed.
    """
    try:
        from tensorboard.summary import Writer
    except ImportError as error:
        raise ImportError("TensorBoard is not installed. Try: pip install tensorboard") from error
    writer = Writer(str(directory))

    def log(metrics: dict, step: int) -> None:
        for name, number in metrics.items():
            if name != "step":
                writer.add_scalar(name, number, step)
        writer.flush()  # so that the curves grow while the model is trained

    return log


def log_to_wandb(**settings) -> Callable[[dict, int], None]:
    r"""Return a callback that logs a step's metrics in a new run of Weights & Biases.

    **Arguments** as for `wandb.init`, such as `project="plainformer"` or `mode="offline"`. **Raises** `ImportError` if
    the package wandb is not installed.
    """
    try:
        import wandb
    except ImportError as error:
        raise ImportError("Weights & Biases is not installed. Try: pip install wandb") from error
    run = wandb.init(**settings)

    def log(metrics: dict, step: int) -> None:
        run.log(metrics, step=step)

    return log
