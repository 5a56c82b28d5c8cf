"""Plainformer: the transformer in plain JAX, one module per chapter of the book."""

from plainformer import exercises as exercises, plots as plots
from plainformer.bpe import (
    BytePairEncoder as BytePairEncoder,
)
from plainformer.data import (
    load_text as load_text,
    python_reference as python_reference,
)
from plainformer.merges import (
    byte_alphabet as byte_alphabet,
    count_pairs as count_pairs,
    learn_merges as learn_merges,
    merge_pair as merge_pair,
    pre_tokenise as pre_tokenise,
)
from plainformer.multi_head import (
    MultiHeadAttention as MultiHeadAttention,
    merge_heads as merge_heads,
    multi_head_concat as multi_head_concat,
    multi_head_sum as multi_head_sum,
    split_heads as split_heads,
)
from plainformer.self_attention import (
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
from plainformer.tokens import (
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
from plainformer.vocabulary import (
    Vocabulary as Vocabulary,
)
