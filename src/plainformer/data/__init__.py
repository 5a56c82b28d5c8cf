"""Data to learn from: texts, sentences in pairs, images, dates and names; and what turns texts into batches."""

from plainformer.data.batches import (
    consecutive_batches as consecutive_batches,
    epoch_batches as epoch_batches,
    length_buckets as length_buckets,
    random_batches as random_batches,
)
from plainformer.data.copies import (
    NearDuplicate as NearDuplicate,
    exact_duplicates as exact_duplicates,
    found_by_bands as found_by_bands,
    jaccard as jaccard,
    min_hashes as min_hashes,
    near_duplicates as near_duplicates,
    shared_ngrams as shared_ngrams,
)
from plainformer.data.crossings import crossings as crossings
from plainformer.data.dates import date_pairs as date_pairs, date_splits as date_splits
from plainformer.data.dialogues import Dialogue as Dialogue, dialogues as dialogues
from plainformer.data.digits import digits as digits
from plainformer.data.docstrings import docstring_splits as docstring_splits
from plainformer.data.labelled import (
    classification_batch as classification_batch,
    label_ids as label_ids,
    load_labelled as load_labelled,
)
from plainformer.data.labelled_stories import LabelledStory as LabelledStory, labelled_stories as labelled_stories
from plainformer.data.named_batches import (
    LabelledBatch as LabelledBatch,
    MaskedBatch as MaskedBatch,
    PackedWindows as PackedWindows,
    PaddedWindows as PaddedWindows,
    TranslationBatch as TranslationBatch,
    Windows as Windows,
)
from plainformer.data.names import name_splits as name_splits, names_by_language as names_by_language
from plainformer.data.numbers import number_splits as number_splits, number_words as number_words
from plainformer.data.packing import pack as pack
from plainformer.data.padding import pad_texts as pad_texts
from plainformer.data.parallel import keep_short as keep_short, load_parallel as load_parallel, multi30k as multi30k
from plainformer.data.reactions import textbook_reactions as textbook_reactions
from plainformer.data.stored import load_record as load_record, load_weights as load_weights
from plainformer.data.stories import (
    next_words as next_words,
    possible_sentences as possible_sentences,
    stories as stories,
    word_kinds as word_kinds,
    word_surprises as word_surprises,
    world_after as world_after,
)
from plainformer.data.telling import continue_story as continue_story
from plainformer.data.text import (
    load_text as load_text,
    python_reference as python_reference,
    python_reference_splits as python_reference_splits,
    split_text as split_text,
    stream_text as stream_text,
    tiny_shakespeare as tiny_shakespeare,
)
from plainformer.data.things import thing_splits as thing_splits
from plainformer.data.token_files import open_tokens as open_tokens, write_tokens as write_tokens
from plainformer.data.windows import (
    consecutive_windows as consecutive_windows,
    random_windows as random_windows,
    stream_windows as stream_windows,
)
from plainformer.data.word_order import verbs_last as verbs_last
