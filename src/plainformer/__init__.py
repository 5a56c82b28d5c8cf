"""Plainformer: the transformer in plain JAX, one module per chapter of the book."""

from plainformer import exercises as exercises, plots as plots
from plainformer.attention.cache import KeyValueCache as KeyValueCache
from plainformer.attention.heads import merge_heads as merge_heads, split_heads as split_heads
from plainformer.attention.multi_head import (
    MultiHeadAttention as MultiHeadAttention,
    multi_head_concat as multi_head_concat,
    multi_head_sum as multi_head_sum,
)
from plainformer.attention.rollout import attention_rollout as attention_rollout, class_attention as class_attention
from plainformer.attention.self_attention import (
    SelfAttention as SelfAttention,
    attend as attend,
    attention_weights as attention_weights,
    causal_mask as causal_mask,
    dot_product_scores as dot_product_scores,
    hard_attend as hard_attend,
    padding_mask as padding_mask,
    scaled_scores as scaled_scores,
    shared_projection_scores as shared_projection_scores,
    softmax as softmax,
    weighted_average as weighted_average,
    window_weights as window_weights,
)
from plainformer.blocks.blocks import TransformerBlock as TransformerBlock, post_norm as post_norm, pre_norm as pre_norm
from plainformer.blocks.layers import (
    FeedForward as FeedForward,
    LayerNorm as LayerNorm,
    RMSNorm as RMSNorm,
    SwiGLU as SwiGLU,
    count_parameters as count_parameters,
    dropout as dropout,
    standardise as standardise,
)
from plainformer.data.dates import (
    DatePair as DatePair,
    DateSplits as DateSplits,
    LabelledName as LabelledName,
    NameSplits as NameSplits,
    date_pairs as date_pairs,
    date_splits as date_splits,
    name_splits as name_splits,
    names_by_language as names_by_language,
    number_words as number_words,
)
from plainformer.data.parallel import (
    Digits as Digits,
    DigitSplits as DigitSplits,
    ParallelSplits as ParallelSplits,
    digits as digits,
    label_ids as label_ids,
    load_labelled as load_labelled,
    load_parallel as load_parallel,
    multi30k as multi30k,
    pad_texts as pad_texts,
)
from plainformer.data.text import (
    all_windows as all_windows,
    load_text as load_text,
    python_reference as python_reference,
    python_reference_splits as python_reference_splits,
    split_text as split_text,
    tiny_shakespeare as tiny_shakespeare,
    windows_at as windows_at,
)
from plainformer.generation.beam import Hypothesis as Hypothesis, beam_search as beam_search
from plainformer.generation.sampling import (
    Continuation as Continuation,
    generate as generate,
    next_token_probabilities as next_token_probabilities,
    sequence_log_probs as sequence_log_probs,
)
from plainformer.generation.translation import (
    exact_match as exact_match,
    translate as translate,
    translation_batch as translation_batch,
    translation_loss as translation_loss,
)
from plainformer.models.decoder import (
    Decoder as Decoder,
    DecoderConfig as DecoderConfig,
    training_flops as training_flops,
)
from plainformer.models.encoder import Encoder as Encoder, EncoderConfig as EncoderConfig
from plainformer.models.pretraining import (
    ClassifierConfig as ClassifierConfig,
    EncoderClassifier as EncoderClassifier,
    MaskedLanguageModel as MaskedLanguageModel,
    classification_loss as classification_loss,
    mask_tokens as mask_tokens,
    masked_token_loss as masked_token_loss,
    mean_pool as mean_pool,
)
from plainformer.models.seq2seq import Seq2Seq as Seq2Seq, Seq2SeqGiven as Seq2SeqGiven
from plainformer.models.seq2seq_config import Seq2SeqConfig as Seq2SeqConfig
from plainformer.models.vision import (
    GridPositions as GridPositions,
    ViT as ViT,
    ViTConfig as ViTConfig,
    patch_kernel as patch_kernel,
    sinusoidal_positions_2d as sinusoidal_positions_2d,
)
from plainformer.positions.positions import (
    LearnedPositions as LearnedPositions,
    RotaryPositions as RotaryPositions,
    SinusoidalPositions as SinusoidalPositions,
    rotate_pairs as rotate_pairs,
    shift_matrix as shift_matrix,
    sinusoidal_positions as sinusoidal_positions,
)
from plainformer.positions.relative import (
    AlibiPositions as AlibiPositions,
    RelativePositions as RelativePositions,
    alibi_slopes as alibi_slopes,
    new_positions as new_positions,
    relative_buckets as relative_buckets,
)
from plainformer.tokens.bpe import BytePairEncoder as BytePairEncoder
from plainformer.tokens.merges import (
    byte_alphabet as byte_alphabet,
    count_pairs as count_pairs,
    learn_merges as learn_merges,
    merge_pair as merge_pair,
    pre_tokenise as pre_tokenise,
)
from plainformer.tokens.tokens import (
    LinearEmbedding as LinearEmbedding,
    TokenEmbedding as TokenEmbedding,
    cosine_similarity as cosine_similarity,
    image_to_patches as image_to_patches,
    linear_map as linear_map,
    look_up as look_up,
    next_token_pairs as next_token_pairs,
    one_hot as one_hot,
    patches_to_image as patches_to_image,
)
from plainformer.tokens.vocabulary import Vocabulary as Vocabulary
from plainformer.training.checkpoints import (
    list_checkpoints as list_checkpoints,
    load_checkpoint as load_checkpoint,
    save_checkpoint as save_checkpoint,
)
from plainformer.training.fit import (
    FitResult as FitResult,
    TrainingConfig as TrainingConfig,
    TrainingInterrupted as TrainingInterrupted,
    fit as fit,
    learning_rate_schedule as learning_rate_schedule,
    new_optimiser as new_optimiser,
)
from plainformer.training.losses import (
    bits_per_character as bits_per_character,
    cross_entropy as cross_entropy,
    mean_next_token_loss as mean_next_token_loss,
    next_token_loss as next_token_loss,
    perplexity as perplexity,
)
from plainformer.training.ngrams import NgramModel as NgramModel
from plainformer.training.saving import load_model as load_model, save_model as save_model
