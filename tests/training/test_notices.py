"""A warning points at the reader's line, through whatever functions and wrappers it came."""

import warnings
from pathlib import Path

import pytest
from tiny_run import batch_at, run

import plainformer
from plainformer.training.notices import warn


def through(*modules):
    """Warn from functions of these modules that call one another, the last of them first."""

    def call():
        warn("careful")

    for module in modules:
        names = {"__name__": module, "call": call}
        exec("def wrapper(inner=call):\n    inner()", names)
        call = names["wrapper"]
    call()


def test_a_warning_points_at_whoever_called_the_package():
    with pytest.warns(UserWarning, match="careful") as caught:
        through("plainformer.training.run", "contextlib", "plainformer.training.fit", "jaxtyping", "plainformer.checks")
    assert caught[0].filename == __file__


def test_fit_warns_outside_of_the_package(tmp_path):
    run(directory=tmp_path)
    (tmp_path / "000012.safetensors").write_bytes(b"torn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(directory=tmp_path)
        run(batches=map(batch_at, range(3)))
    assert len({str(each.message) for each in caught}) == 2
    package = Path(plainformer.__file__).parent
    assert not any(Path(each.filename).is_relative_to(package) for each in caught)
