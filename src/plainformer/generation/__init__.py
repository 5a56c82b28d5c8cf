"""Writing texts: sampling, beam search, translation, a draft that guesses, many at once."""

from plainformer.generation.adjusting import (
    penalise_counts as penalise_counts,
    penalise_repetition as penalise_repetition,
)
from plainformer.generation.allowed import AllowedTexts as AllowedTexts, allowed_texts as allowed_texts
from plainformer.generation.choosing import best_of as best_of, majority as majority, read_answers as read_answers
from plainformer.generation.pages import PageTables as PageTables, place_in_pages as place_in_pages
from plainformer.generation.sampling import sequence_log_probs as sequence_log_probs
from plainformer.generation.serving import Server as Server
from plainformer.generation.speculative import (
    accept_drafted as accept_drafted,
    speculative_generate as speculative_generate,
)
from plainformer.generation.translation import exact_match as exact_match
