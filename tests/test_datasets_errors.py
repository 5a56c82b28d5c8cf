"""What the readers of data sets say to bad input."""

import pytest

from plainformer.datasets import pad_texts


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pad_texts([]), ValueError, r"^texts is empty; wanted at least one list of token ids"),
        (lambda: pad_texts([[1], []]), ValueError, r"^texts\[1\] is empty; wanted at least one token"),
        (
            lambda: pad_texts([[1], [1, 2, 3], [1, 2, 3, 4]], 2),
            ValueError,
            r"^texts\[1\] has 3 tokens; wanted at most 2.*length=4, which holds all texts",
        ),
        (lambda: pad_texts([[1]], 0), ValueError, r"^length is 0; wanted at least 1"),
        (lambda: pad_texts([[1]], 2.0), TypeError, r"^length is 2.0; wanted a whole number"),
        (lambda: pad_texts([[1], [2, -3]]), ValueError, r"^texts\[1\]: ids\[1\] is -3; wanted 0 to"),
        (lambda: pad_texts([1, 2]), ValueError, r"^texts\[0\]: ids has shape \(\); wanted \(seq,\)"),
        (lambda: pad_texts([[1.5]]), TypeError, r"^texts\[0\]: ids are float64; wanted whole numbers"),
        (lambda: pad_texts(["abc"]), TypeError, r"^texts\[0\]: ids is a string.*Encode it first"),
        (lambda: pad_texts("abc"), TypeError, r"^texts is a string; wanted a list of texts"),
        (lambda: pad_texts(3), TypeError, r"^texts is 3; wanted a list of texts"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_pad_texts_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
