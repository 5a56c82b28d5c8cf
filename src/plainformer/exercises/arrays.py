"""The arrays that a reader's function gets: JAX's or, in the pages of the site, where there is no JAX, NumPy's."""

import contextlib

import numpy as np

try:
    import jax
except ImportError:  # Python in a browser
    jax = None  # type: ignore[assignment]


def as_readers_array(array: np.ndarray):
    """Return a copy in the kind of number that readers meet: truth values, int32 or float32."""
    array = array.astype({"b": bool, "i": np.int32}.get(array.dtype.kind, np.float32))
    return jax.device_put(array) if jax else array  # unlike jnp.asarray, device_put compiles nothing


def precise_products() -> contextlib.AbstractContextManager:
    """On accelerators a product of float32 may be rounded far more coarsely than we compare."""
    return jax.default_matmul_precision("highest") if jax else contextlib.nullcontext()


def is_real(dtype: np.dtype) -> bool:
    """Whether these are numbers that can be compared with ours; JAX's half precision is among them."""
    return np.can_cast(dtype, np.float64, "same_kind")
