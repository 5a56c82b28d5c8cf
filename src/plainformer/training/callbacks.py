"""Where the metrics of `fit` go: a table on the disk, and other programs (chapter on the decoder)."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

from plainformer.checks import checked
from plainformer.data.files import append_text, write_text
from plainformer.training.arrays import Location

COLUMNS = ["step", "loss", "gradient_norm", "learning_rate", "validation_loss"]


class MetricsTable:
    """A table of metrics on the disk, one row a step: rows are appended, or it is written anew where they changed."""

    def __init__(self, path: Path):
        self.path = path
        self.columns: list[str] = []
        self.rows: list[dict] = []  # those in the file

    def write(self, metrics: list[dict]) -> None:
        """Let the table hold these rows; raise `OSError` if it cannot be written."""
        columns = list(dict.fromkeys(COLUMNS + [name for row in metrics for name in row]))
        goes_on = columns == self.columns and self.rows == metrics[: len(self.rows)] and self.path.is_file()
        new = metrics[len(self.rows) :] if goes_on else metrics
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
        if not goes_on:
            writer.writeheader()
        writer.writerows(new)
        self.columns = []  # should writing fail, it is written anew
        (append_text if goes_on else write_text)(self.path, text.getvalue())
        self.columns, self.rows = columns, [dict(row) for row in metrics]


@checked
def log_to_tensorboard(directory: Location) -> Callable[[dict, int], None]:
    r"""Return a callback that writes a step's metrics where TensorBoard finds them: `tensorboard --logdir DIRECTORY`.

    Raises:
        ImportError: if the package tensorboard is not installed.
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

    Args:
        **settings: as for `wandb.init`, such as `project="plainformer"` or `mode="offline"`.

    Raises:
        ImportError: if the package wandb is not installed.
    """
    try:
        import wandb
    except ImportError as error:
        raise ImportError("Weights & Biases is not installed. Try: pip install wandb") from error
    run = wandb.init(**settings)

    def log(metrics: dict, step: int) -> None:
        run.log(metrics, step=step)

    return log
