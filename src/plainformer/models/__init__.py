"""Whole models: decoder, encoder, both, vision transformer, and how they are tuned."""

from plainformer.models.accounting import active_parameters as active_parameters
from plainformer.models.adapters import (
    AdaptedLinear as AdaptedLinear,
    add_adapters as add_adapters,
    is_adapter as is_adapter,
    load_adapters as load_adapters,
    merge_adapters as merge_adapters,
    save_adapters as save_adapters,
)
from plainformer.models.finetuning import (
    Preferences as Preferences,
    add_tokens as add_tokens,
    answer_windows as answer_windows,
    continuation_windows as continuation_windows,
    leash as leash,
    log_probability as log_probability,
    preference_loss as preference_loss,
    preference_surprise as preference_surprise,
    preferences as preferences,
)
from plainformer.models.hardware import Hardware as Hardware, this_machine as this_machine
from plainformer.models.inside import (
    changed as changed,
    control_labels as control_labels,
    effect as effect,
    heads_at as heads_at,
    induction_scores as induction_scores,
    lens as lens,
    mean_run as mean_run,
    patch as patch,
    patch_path as patch_path,
    probe_accuracy as probe_accuracy,
    silence as silence,
    steer as steer,
)
from plainformer.models.modern import (
    PUBLISHED as PUBLISHED,
    Published as Published,
    block_parameters as block_parameters,
    planned_parameters as planned_parameters,
    shrunk as shrunk,
)
from plainformer.models.planning import Plan as Plan, Sent as Sent, plan as plan
