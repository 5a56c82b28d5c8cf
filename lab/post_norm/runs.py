"""The runs with post-norm: what each changes."""

import dataclasses
from typing import Literal

MASK_ID = 256
KINDS = ("scores", "values", "network")  # of matrices


@dataclasses.dataclass(frozen=True)
class Run:
    """How a model is wired, started and trained."""

    placement: Literal["pre", "post"] = "post"
    small: tuple[str, ...] = ()  # kinds of matrices that start otherwise than as Glorot's
    rate: float = 1e-3
    warmup: int = 1000
    steps: int = 5000
    start: str = "drawn"
    std: float = 0.0
    factor: float = 1.0
    width: int = 32
    depth: int = 12
    skip: float = 1.0
    normed_input: bool = False
    positions: bool = False
    task: str = "next"

    @property
    def name(self) -> str:
        """What it is called among those that are kept: what differs from the plainest run."""
        plain, fields = dataclasses.asdict(Run()), dataclasses.asdict(self)
        differs = {key: "+".join(value) if key == "small" else value for key, value in fields.items()}
        return "-".join(f"{key}={value}" for key, value in differs.items() if fields[key] != plain[key]) or "plain"


def bert(width: int = 32, small=KINDS, **others) -> Run:
    """Some matrices drawn as BERT's, in proportion to the width."""
    return Run(small=tuple(small), std=0.02 * (768 / width) ** 0.5, width=width, **others)


SEEDS, SHORT, VALUES = (0, 1, 2), 2000, ("values",)
SOME = ("scores",), ("network",), ("scores", "network"), VALUES, ("scores", "values"), ("values", "network"), KINDS
STARTS = (Run(steps=SHORT), *(bert(small=small, steps=SHORT) for small in SOME))  # in the table of the chapter
OTHERS = (  # with Glorot's weights
    Run(warmup=200, steps=SHORT),
    Run(normed_input=True, steps=SHORT),
    Run(positions=True, steps=SHORT),
    Run(width=64, steps=SHORT),
    Run(small=("scores",), start="times", factor=3.0, steps=SHORT),
)
SMALLER = (
    Run(start="last", steps=SHORT),
    *(Run(small=VALUES, start="times", factor=factor, steps=SHORT) for factor in (0.9, 0.8, 0.63)),
    Run(small=KINDS, std=0.02, steps=SHORT),
    bert(depth=24, steps=SHORT),
    bert(64, steps=SHORT),
    # DeepNorm, for a decoder alone: Wang et al. (2022).
    Run(small=("values", "network"), start="times", factor=96**-0.25, skip=24**0.25, steps=SHORT),
)
AS_PYTORCH = Run(small=("scores", "values"), start="PyTorch", steps=SHORT)
MASKED = (
    Run(task="masked", positions=True, steps=SHORT),
    bert(task="masked", positions=True, steps=SHORT),
    Run(task="masked", positions=True, steps=SHORT, placement="pre"),
)
LONGER = (
    Run(rate=3e-4),
    Run(),
    bert(),
    bert(rate=3e-3),
    bert(rate=3e-3, warmup=0),
    Run(placement="pre", rate=3e-3, warmup=0),
)
RUNS = {
    **dict.fromkeys(STARTS, SEEDS),
    AS_PYTORCH: SEEDS,
    **dict.fromkeys((*OTHERS, *SMALLER, *MASKED), (0,)),
    Run(placement="pre", steps=SHORT): (0,),
    bert(placement="pre", steps=SHORT): (0,),
    **dict.fromkeys(LONGER, SEEDS),
}
SAID = {  # by the names of their facts
    "plain": Run(steps=SHORT),
    "pytorch": AS_PYTORCH,
    "scores_times_3": Run(small=("scores",), start="times", factor=3.0, steps=SHORT),
    "values_smaller_by_a_fifth": Run(small=VALUES, start="times", factor=0.8, steps=SHORT),
    "slow": Run(rate=3e-4),
    "bert": bert(),
    "pre_norm": Run(placement="pre", rate=3e-3, warmup=0),
}
