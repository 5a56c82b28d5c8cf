"""What the appendix says that JAX prints, JAX prints."""

import doctest
import re

import jax
import numpy as np
from book import ROOT


def test_the_ten_steps_print_what_stands_there():
    text = (ROOT / "appendix" / "jax.md").read_text("utf-8")
    # Without the fences, which would count as printed, and with the reader's rules for types.
    examples = doctest.DocTestParser().get_doctest(
        re.sub(r"^```.*$", "", text, flags=re.MULTILINE), {}, "jax.md", None, 0
    )
    with np.printoptions(), jax.numpy_dtype_promotion("standard"):
        found = doctest.DocTestRunner(verbose=False).run(examples)
    assert found.failed == 0
    assert found.attempted > 30
