"""What a type checker sees of a user's script; `make lint` has mypy read it, and nothing runs it."""

from collections.abc import Iterator
from typing import Any, assert_type

import plainformer as pf
from plainformer.generation.beam import Hypothesis
from plainformer.generation.sampling import Continuation


def script(model: pf.Decoder, batches: Iterator, config: pf.TrainingConfig) -> None:
    """Train, save, load and write, as the README does."""
    assert_type(pf.fit(model, pf.training.next_token_loss, batches, config).model, pf.Decoder)
    assert_type(pf.load_model("model.safetensors", pf.Decoder), pf.Decoder)
    assert_type(pf.load_model("model.safetensors", pf.Decoder, tokenizer=True), tuple[pf.Decoder, Any])
    assert_type(pf.generate(model, [[1, 2]], 5, temperature=0.5), list[Continuation])
    assert_type(pf.generate(model, [1, 2], 5, temperature=0.5), Continuation)
    assert_type(pf.generate(model, ["The ", "A "], 5), list[Continuation])
    assert_type(pf.generate(model, "The ", 5), Continuation)
    assert_type(pf.generate(model, [[1, 2]], 5, stream=True), Iterator[list[int | None]])
    assert_type(pf.generate(model, [1, 2], 5, stream=True), Iterator[int])
    assert_type(pf.beam_search(model, [1, 2], 5, beam_width=2), list[Hypothesis])
    assert_type(pf.beam_search(model, [[1, 2]], 5, beam_width=2), list[list[Hypothesis]])
