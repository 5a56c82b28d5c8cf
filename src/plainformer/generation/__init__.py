"""Writing texts: sampling, beam search, translation, a draft that guesses (chapters 08, 10, 12)."""

from plainformer.generation.sampling import sequence_log_probs as sequence_log_probs
from plainformer.generation.speculative import (
    accept_drafted as accept_drafted,
    speculative_generate as speculative_generate,
)
from plainformer.generation.translation import exact_match as exact_match
