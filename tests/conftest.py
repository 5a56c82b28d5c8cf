"""What every test shares: strict JAX, a fixed random key, and a deterministic hypothesis."""

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


@pytest.fixture(scope="module", autouse=True)
def clear_compiled():
    """Give back what a module has compiled, since each program holds memory mappings.

    Linux allows a process 65,530 of them; at the next one XLA's compiler ends in a segmentation fault.
    """
    yield
    eqx.clear_caches()
    jax.clear_caches()


def pytest_addoption(parser):
    parser.addini("quick_to_compile", "folders and files of tests whose programs are tiny and run a few times", "paths")


@pytest.fixture(scope="module", autouse=True)
def quick_to_compile(request):
    """Let the compiler leave out most of its optimisations where `quick_to_compile` in pyproject.toml says so."""
    quick = any(request.path.is_relative_to(place) for place in request.config.getini("quick_to_compile"))
    jax.config.update("jax_disable_most_optimizations", quick)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


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
