"""Attention: one head, several, a cache, where a model looks, and what costs less."""

from plainformer.attention.delta import (
    DeltaCache as DeltaCache,
    GatedDeltaNet as GatedDeltaNet,
    delta_rule as delta_rule,
    delta_step as delta_step,
    delta_weights as delta_weights,
    short_convolution as short_convolution,
)
from plainformer.attention.efficiency import (
    Blockwise as Blockwise,
    blockwise_attention as blockwise_attention,
    online_softmax_step as online_softmax_step,
)
from plainformer.attention.few_bits import quantise_groups as quantise_groups
from plainformer.attention.gated_linear import (
    GatedLinearAttention as GatedLinearAttention,
    gated_linear_attention as gated_linear_attention,
    gated_linear_step as gated_linear_step,
    gated_linear_weights as gated_linear_weights,
)
from plainformer.attention.kernels import AttentionKernel as AttentionKernel, Softmax as Softmax
from plainformer.attention.latent import (
    LatentAttention as LatentAttention,
    LatentConfig as LatentConfig,
    absorbed_scores as absorbed_scores,
    latent_keys as latent_keys,
    latent_values as latent_values,
)
from plainformer.attention.linear import (
    LinearKernel as LinearKernel,
    linear_attention as linear_attention,
    linear_step as linear_step,
    linear_weights as linear_weights,
    positive_features as positive_features,
)
from plainformer.attention.mask import Mask as Mask
from plainformer.attention.multi_head import AcrossHeads as AcrossHeads
from plainformer.attention.sinks import softmax_with_sink as softmax_with_sink
