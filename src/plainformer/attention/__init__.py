"""Attention: one head, several, a cache, where a model looks, and what costs less (chapters 02, 03, 08, 11, 12)."""

from plainformer.attention.efficiency import (
    Blockwise as Blockwise,
    blockwise_attention as blockwise_attention,
    online_softmax_step as online_softmax_step,
)
from plainformer.attention.kernels import AttentionKernel as AttentionKernel, Softmax as Softmax
from plainformer.attention.linear import (
    LinearKernel as LinearKernel,
    linear_attention as linear_attention,
    linear_step as linear_step,
    linear_weights as linear_weights,
    positive_features as positive_features,
)
from plainformer.attention.mask import Mask as Mask
