"""What every test shares: strict JAX, a fixed random key, and a deterministic hypothesis."""

import os
from pathlib import Path

import equinox as eqx
import hypothesis
import jax
import jaxtyping
import matplotlib
import pytest

# No window is ever opened by a test.
matplotlib.use("agg")

# A sum of an integer and a float array is nearly always a slip. Inside the tests JAX therefore refuses it; readers keep
# JAX's own forgiving defaults. (A vector may be added to any number of rows: that is what leading axes are for.)
jax.config.update("jax_numpy_dtype_promotion", "strict")

# `deadline=None`: the first example pays for the compiler. `derandomize`: a run that fails for one
# person fails for everyone, and `database=None` keeps no memory of earlier runs that could change that.
hypothesis.settings.register_profile("book", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("book")


# Each compiled program holds memory mappings. Linux allows a process 65,530 of them; at the next one XLA ends
# in a segmentation fault.
MANY_MAPPINGS = 15_000


def memory_mappings() -> int:
    """How many memory mappings this process holds, as far as the system says so."""
    maps = Path("/proc/self/maps")
    return maps.read_bytes().count(b"\n") if maps.exists() else MANY_MAPPINGS + 1


def clear_compiled():
    """Give back all that was compiled."""
    eqx.clear_caches()
    jax.clear_caches()


def pytest_addoption(parser):
    """Add the two lists of pyproject.toml and the option `--only`."""
    parser.addini("quick_to_compile", "folders and files of tests whose programs are tiny and run a few times", "paths")
    parser.addini("gate", "files of tests that belong to the gate, beside those that prove an equation", "paths")
    parser.addoption("--only", choices=("gate", "rest"), help="only the tests of the gate, or only what it leaves out")


def is_of_the_gate(item: pytest.Item) -> bool:
    """Say whether a test runs before anything lands: it proves an equation, is listed or marked, and is not slow."""
    listed = any(item.path.is_relative_to(place) for place in item.config.getini("gate"))
    marked = any(item.get_closest_marker(name) for name in ("equation", "gate"))
    elsewhere = any(item.get_closest_marker(name) for name in ("slow", "run_time_check"))
    return (listed or marked) and not elsewhere


def proven(items: list[pytest.Item]) -> set[str]:
    """The labels of the equations that these tests are marked with."""
    return {label for item in items for mark in item.iter_markers("equation") for label in mark.args}


def pytest_collection_modifyitems(config, items):
    """Keep the asked-for part. What takes longest comes first, so that no worker is left with it at the end."""
    if only := config.getoption("--only"):
        kept = [item for item in items if is_of_the_gate(item) == (only == "gate")]
        left_out = [item for item in items if is_of_the_gate(item) != (only == "gate")]
        if only == "gate" and (unproven := proven(left_out) - proven(kept)):
            raise pytest.UsageError(f"all tests of {unproven} are slow: the gate needs one of each equation")
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept
    if os.environ.get("EQX_ON_ERROR") == "off":  # as Equinox reads it, once
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("run_time_check")])
        items[:] = [item for item in items if item.get_closest_marker("run_time_check") is None]
    items.sort(key=lambda item: not item.nodeid.startswith(("chapters/", "lab/", "tests/tools/")))


@pytest.fixture(scope="module", autouse=True)
def quick_to_compile(request):
    """Let the compiler leave out most of its optimisations where `quick_to_compile` in pyproject.toml says so."""
    quick = any(request.path.is_relative_to(place) for place in request.config.getini("quick_to_compile"))
    if quick != jax.config.read("jax_disable_most_optimizations"):
        clear_compiled()
        jax.config.update("jax_disable_most_optimizations", quick)
    yield
    jax.config.update("jax_disable_most_optimizations", quick)  # whatever the module did
    if memory_mappings() > MANY_MAPPINGS:
        clear_compiled()


@pytest.fixture
def key() -> jax.Array:
    """One random key, the same in every test: split it, never reuse it."""
    return jax.random.key(20170612)


@pytest.fixture
def unchecked():
    """Switch jaxtyping's run-time checks off for one test.

    The tests run with every annotated shape checked, and that check comes first. A test that wants to
    read the package's *own* message for a wrong shape, as a reader would see it, asks for this fixture.
    """
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture
def x64():
    """Double precision for one test: `check_grads` and tight tolerances need it."""
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
