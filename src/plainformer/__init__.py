"""Plainformer: the transformer in plain JAX, the package behind the book of that name.

`pf.attend` is attention, `pf.Decoder` a language model, `pf.generate` lets it write, `pf.load_pretrained("decoder")`
loads a trained one, and `pf.exercises.check` looks at functions of your own. `help(pf.attend)` tells more of one of
them; its example takes it that you have said `import jax`, `import jax.numpy as jnp` and `import plainformer as pf`.
"""

import sys
from typing import TYPE_CHECKING

from plainformer.contents import Rooms as _Rooms

# isort: off
# fmt: off
if TYPE_CHECKING:  # read by type checkers, and by `Rooms`, which imports each of these names when it is asked for
    from plainformer import data as data, plots as plots, training as training
    # Tokens (chapter on tokens)
    from plainformer.tokens.vocabulary import Vocabulary as Vocabulary
    from plainformer.tokens.bpe import BytePairEncoder as BytePairEncoder
    from plainformer.tokens.tokens import (
        one_hot as one_hot, embed as embed, TokenEmbedding as TokenEmbedding, Linear as Linear,
        next_token_pairs as next_token_pairs, cosine_similarity as cosine_similarity)
    from plainformer.tokens.patches import image_to_patches as image_to_patches, patches_to_image as patches_to_image
    # Attention (02, 03), and looking inside
    from plainformer.seeing import look as look, see as see
    from plainformer.attention.self_attention import (
        weighted_average as weighted_average, window_weights as window_weights,
        dot_product_scores as dot_product_scores, shared_projection_scores as shared_projection_scores,
        scaled_scores as scaled_scores, softmax as softmax,
        attention_weights as attention_weights, attend as attend, hard_attention as hard_attention,
        causal_mask as causal_mask, padding_mask as padding_mask, SelfAttention as SelfAttention)
    from plainformer.attention.multi_head import (
        multi_head_concat as multi_head_concat, multi_head_sum as multi_head_sum, split_heads as split_heads,
        merge_heads as merge_heads, MultiHeadAttention as MultiHeadAttention)
    from plainformer.attention.rollout import attention_rollout as attention_rollout, class_attention as class_attention
    # Blocks (04, 05)
    from plainformer.blocks.layers import (
        standardise as standardise, LayerNorm as LayerNorm, RMSNorm as RMSNorm, FeedForward as FeedForward,
        SwiGLU as SwiGLU, dropout as dropout)
    from plainformer.blocks.blocks import pre_norm as pre_norm, post_norm as post_norm, Block as Block
    from plainformer.models.config import StackConfig as StackConfig, make_block as make_block
    # Positions (06)
    from plainformer.positions.positions import (
        PositionScheme as PositionScheme, NoPositions as NoPositions, LearnedPositions as LearnedPositions)
    from plainformer.positions.sinusoidal import (
        sinusoidal_positions as sinusoidal_positions, shift_matrix as shift_matrix,
        SinusoidalPositions as SinusoidalPositions)
    from plainformer.positions.rotary import rotate_pairs as rotate_pairs, RotaryPositions as RotaryPositions
    from plainformer.positions.relative import (
        relative_buckets as relative_buckets, RelativePositions as RelativePositions)
    from plainformer.positions.alibi import alibi_slopes as alibi_slopes, AlibiPositions as AlibiPositions
    from plainformer.positions.grid import sinusoidal_positions_2d as sinusoidal_positions_2d
    # Models (07 to 11), and texts that they write
    from plainformer.models.decoder import Decoder as Decoder, DecoderConfig as DecoderConfig
    from plainformer.models.accounting import count_parameters as count_parameters, training_flops as training_flops
    from plainformer.models.planning import plan as plan
    from plainformer.models.encoder import Encoder as Encoder, EncoderConfig as EncoderConfig
    from plainformer.models.pretraining import (
        mask_tokens as mask_tokens, MaskedLanguageModel as MaskedLanguageModel, masked_token_loss as masked_token_loss,
        mean_pool as mean_pool, ClassifierConfig as ClassifierConfig, EncoderClassifier as EncoderClassifier,
        classification_loss as classification_loss)
    from plainformer.models.seq2seq import Seq2Seq as Seq2Seq, Seq2SeqConfig as Seq2SeqConfig
    from plainformer.models.vision import ViT as ViT, ViTConfig as ViTConfig
    from plainformer.models.stored import load_pretrained as load_pretrained
    from plainformer.pretrained.pretrained import (
        open_model as open_model, to_hugging_face as to_hugging_face)
    from plainformer.generation.sampling import (
        generate as generate, next_token_probabilities as next_token_probabilities)
    from plainformer.generation.beam import beam_search as beam_search
    from plainformer.generation.filling import fill_holes as fill_holes
    from plainformer.generation.chatting import Chat as Chat
    from plainformer.generation.translation import (
        translation_batch as translation_batch, translation_loss as translation_loss, translate as translate)
    # Training and saving
    from plainformer.training import (TrainingConfig as TrainingConfig, cross_entropy as cross_entropy, fit as fit,
        load_model as load_model, save_model as save_model)

    def __getattr__(name: str): ...
else:
    sys.modules[__name__].__class__ = _Rooms
