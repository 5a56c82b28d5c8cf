"""Plainformer: the transformer in plain JAX, one module per chapter of the book."""

from plainformer import exercises as exercises
from plainformer import plots as plots
from plainformer.attention_maps import attention_rollout as attention_rollout
from plainformer.attention_maps import class_attention as class_attention
from plainformer.beam import Hypothesis as Hypothesis
from plainformer.beam import beam_search as beam_search
from plainformer.blocks import (
    TransformerBlock as TransformerBlock,
)
from plainformer.blocks import (
    post_norm as post_norm,
)
from plainformer.blocks import (
    pre_norm as pre_norm,
)
from plainformer.bpe import (
    BytePairEncoder as BytePairEncoder,
)
from plainformer.cache import KeyValueCache as KeyValueCache
from plainformer.checkpoints import list_checkpoints as list_checkpoints
from plainformer.checkpoints import load_checkpoint as load_checkpoint
from plainformer.checkpoints import save_checkpoint as save_checkpoint
from plainformer.data import all_windows as all_windows
from plainformer.data import (
    load_text as load_text,
)
from plainformer.data import (
    python_reference as python_reference,
)
from plainformer.data import python_reference_splits as python_reference_splits
from plainformer.data import split_text as split_text
from plainformer.data import tiny_shakespeare as tiny_shakespeare
from plainformer.data import windows_at as windows_at
from plainformer.datasets import Digits as Digits
from plainformer.datasets import DigitSplits as DigitSplits
from plainformer.datasets import ParallelSplits as ParallelSplits
from plainformer.datasets import digits as digits
from plainformer.datasets import label_ids as label_ids
from plainformer.datasets import load_labelled as load_labelled
from plainformer.datasets import load_parallel as load_parallel
from plainformer.datasets import multi30k as multi30k
from plainformer.datasets import pad_texts as pad_texts
from plainformer.decoder import Decoder as Decoder
from plainformer.decoder import DecoderConfig as DecoderConfig
from plainformer.decoder import training_flops as training_flops
from plainformer.encoder import Encoder as Encoder
from plainformer.encoder import EncoderConfig as EncoderConfig
from plainformer.heads import merge_heads as merge_heads
from plainformer.heads import split_heads as split_heads
from plainformer.languages import DatePair as DatePair
from plainformer.languages import DateSplits as DateSplits
from plainformer.languages import LabelledName as LabelledName
from plainformer.languages import NameSplits as NameSplits
from plainformer.languages import date_pairs as date_pairs
from plainformer.languages import date_splits as date_splits
from plainformer.languages import name_splits as name_splits
from plainformer.languages import names_by_language as names_by_language
from plainformer.languages import number_words as number_words
from plainformer.layers import (
    FeedForward as FeedForward,
)
from plainformer.layers import (
    LayerNorm as LayerNorm,
)
from plainformer.layers import (
    RMSNorm as RMSNorm,
)
from plainformer.layers import (
    SwiGLU as SwiGLU,
)
from plainformer.layers import (
    count_parameters as count_parameters,
)
from plainformer.layers import (
    dropout as dropout,
)
from plainformer.layers import (
    standardise as standardise,
)
from plainformer.losses import bits_per_character as bits_per_character
from plainformer.losses import cross_entropy as cross_entropy
from plainformer.losses import mean_next_token_loss as mean_next_token_loss
from plainformer.losses import next_token_loss as next_token_loss
from plainformer.losses import perplexity as perplexity
from plainformer.merges import (
    byte_alphabet as byte_alphabet,
)
from plainformer.merges import (
    count_pairs as count_pairs,
)
from plainformer.merges import (
    learn_merges as learn_merges,
)
from plainformer.merges import (
    merge_pair as merge_pair,
)
from plainformer.merges import (
    pre_tokenise as pre_tokenise,
)
from plainformer.multi_head import (
    MultiHeadAttention as MultiHeadAttention,
)
from plainformer.multi_head import (
    multi_head_concat as multi_head_concat,
)
from plainformer.multi_head import (
    multi_head_sum as multi_head_sum,
)
from plainformer.ngrams import NgramModel as NgramModel
from plainformer.position_bias import (
    AlibiPositions as AlibiPositions,
)
from plainformer.position_bias import (
    RelativePositions as RelativePositions,
)
from plainformer.position_bias import (
    alibi_slopes as alibi_slopes,
)
from plainformer.position_bias import new_positions as new_positions
from plainformer.position_bias import (
    relative_buckets as relative_buckets,
)
from plainformer.positions import (
    LearnedPositions as LearnedPositions,
)
from plainformer.positions import (
    RotaryPositions as RotaryPositions,
)
from plainformer.positions import (
    SinusoidalPositions as SinusoidalPositions,
)
from plainformer.positions import (
    rotate_pairs as rotate_pairs,
)
from plainformer.positions import (
    shift_matrix as shift_matrix,
)
from plainformer.positions import (
    sinusoidal_positions as sinusoidal_positions,
)
from plainformer.pretraining import ClassifierConfig as ClassifierConfig
from plainformer.pretraining import EncoderClassifier as EncoderClassifier
from plainformer.pretraining import MaskedLanguageModel as MaskedLanguageModel
from plainformer.pretraining import classification_loss as classification_loss
from plainformer.pretraining import mask_tokens as mask_tokens
from plainformer.pretraining import masked_token_loss as masked_token_loss
from plainformer.pretraining import mean_pool as mean_pool
from plainformer.sampling import Continuation as Continuation
from plainformer.sampling import generate as generate
from plainformer.sampling import next_token_probabilities as next_token_probabilities
from plainformer.sampling import sequence_log_probs as sequence_log_probs
from plainformer.self_attention import (
    SelfAttention as SelfAttention,
)
from plainformer.self_attention import (
    attend as attend,
)
from plainformer.self_attention import (
    attention_weights as attention_weights,
)
from plainformer.self_attention import (
    causal_mask as causal_mask,
)
from plainformer.self_attention import (
    dot_product_scores as dot_product_scores,
)
from plainformer.self_attention import (
    hard_attend as hard_attend,
)
from plainformer.self_attention import (
    padding_mask as padding_mask,
)
from plainformer.self_attention import (
    scaled_scores as scaled_scores,
)
from plainformer.self_attention import (
    shared_projection_scores as shared_projection_scores,
)
from plainformer.self_attention import (
    softmax as softmax,
)
from plainformer.self_attention import (
    weighted_average as weighted_average,
)
from plainformer.self_attention import (
    window_weights as window_weights,
)
from plainformer.seq2seq import Seq2Seq as Seq2Seq
from plainformer.seq2seq import Seq2SeqGiven as Seq2SeqGiven
from plainformer.seq2seq_config import Seq2SeqConfig as Seq2SeqConfig
from plainformer.tokens import (
    LinearEmbedding as LinearEmbedding,
)
from plainformer.tokens import (
    TokenEmbedding as TokenEmbedding,
)
from plainformer.tokens import (
    cosine_similarity as cosine_similarity,
)
from plainformer.tokens import (
    image_to_patches as image_to_patches,
)
from plainformer.tokens import (
    linear_map as linear_map,
)
from plainformer.tokens import (
    look_up as look_up,
)
from plainformer.tokens import (
    next_token_pairs as next_token_pairs,
)
from plainformer.tokens import (
    one_hot as one_hot,
)
from plainformer.tokens import (
    patches_to_image as patches_to_image,
)
from plainformer.training import FitResult as FitResult
from plainformer.training import TrainingConfig as TrainingConfig
from plainformer.training import TrainingInterrupted as TrainingInterrupted
from plainformer.training import fit as fit
from plainformer.training import learning_rate_schedule as learning_rate_schedule
from plainformer.training import new_optimiser as new_optimiser
from plainformer.translation import exact_match as exact_match
from plainformer.translation import translate as translate
from plainformer.translation import translation_batch as translation_batch
from plainformer.translation import translation_loss as translation_loss
from plainformer.vision import GridPositions as GridPositions
from plainformer.vision import ViT as ViT
from plainformer.vision import ViTConfig as ViTConfig
from plainformer.vision import patch_kernel as patch_kernel
from plainformer.vision import sinusoidal_positions_2d as sinusoidal_positions_2d
from plainformer.vocabulary import (
    Vocabulary as Vocabulary,
)
from plainformer.weights import load_model as load_model
from plainformer.weights import save_model as save_model
