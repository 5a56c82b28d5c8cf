"""The block and its parts (chapter on blocks), and networks of which few work (chapter on modern models)."""

from plainformer.blocks.blocks import output_norm as output_norm, sandwich_norm as sandwich_norm
from plainformer.blocks.experts import (
    Experts as Experts,
    ExpertsConfig as ExpertsConfig,
    mixture as mixture,
    route as route,
    within_capacity as within_capacity,
)
