"""Losses, the training loop, how good a model has become, saving, scaling laws, recipes."""

from plainformer.training.arrays import named_arrays as named_arrays, with_arrays as with_arrays
from plainformer.training.axes import axis_names as axis_names
from plainformer.training.balance import (
    balance_loss as balance_loss,
    balanced as balanced,
    expert_load as expert_load,
    move_bias as move_bias,
)
from plainformer.training.callbacks import log_to_tensorboard as log_to_tensorboard, log_to_wandb as log_to_wandb
from plainformer.training.checkpoint import (
    list_checkpoints as list_checkpoints,
    load_best as load_best,
    load_checkpoint as load_checkpoint,
    save_checkpoint as save_checkpoint,
)
from plainformer.training.evaluation import (
    accuracy as accuracy,
    bits_per_character as bits_per_character,
    corpus_bleu as corpus_bleu,
    corpus_chrf as corpus_chrf,
    corpus_loss as corpus_loss,
    mean_loss as mean_loss,
)
from plainformer.training.fit import FitResult as FitResult, TrainingInterrupted as TrainingInterrupted, fit as fit
from plainformer.training.losses import (
    bits_from_nats as bits_from_nats,
    contrastive_loss as contrastive_loss,
    cross_entropy as cross_entropy,
    next_token_loss as next_token_loss,
    perplexity as perplexity,
)
from plainformer.training.ngrams import NgramModel as NgramModel
from plainformer.training.operations import (
    Collective as Collective,
    collectives as collectives,
    count_flops as count_flops,
    count_kept_bytes as count_kept_bytes,
)
from plainformer.training.optimiser import (
    TrainingConfig as TrainingConfig,
    learning_rate_schedule as learning_rate_schedule,
    make_optimiser as make_optimiser,
)
from plainformer.training.recipes import (
    endless_schedule as endless_schedule,
    hidden_matrices as hidden_matrices,
    muon as muon,
    with_decay as with_decay,
)
from plainformer.training.saving import (
    load_metadata as load_metadata,
    load_model as load_model,
    save_model as save_model,
)
from plainformer.training.scaling import (
    bubble as bubble,
    collective_bytes as collective_bytes,
    cut_product as cut_product,
    least_tokens as least_tokens,
    least_width as least_width,
    state_bytes as state_bytes,
)
from plainformer.training.scaling_laws import (
    PowerLaw as PowerLaw,
    best_size as best_size,
    bootstrap_power_laws as bootstrap_power_laws,
    fit_power_law as fit_power_law,
    huber as huber,
    power_law_loss as power_law_loss,
    training_work as training_work,
)
from plainformer.training.sharding import (
    DATA as DATA,
    EXPERTS as EXPERTS,
    FULLY_SHARDED as FULLY_SHARDED,
    SEQUENCE as SEQUENCE,
    TENSOR as TENSOR,
    shardings as shardings,
)
from plainformer.training.step import compile_step as compile_step, make_train_step as make_train_step
