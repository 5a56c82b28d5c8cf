"""Losses, the training loop, how good a model has become, and saving what it learned (chapter 07)."""

from plainformer.training.arrays import named_arrays as named_arrays, with_arrays as with_arrays
from plainformer.training.callbacks import log_to_tensorboard as log_to_tensorboard, log_to_wandb as log_to_wandb
from plainformer.training.checkpoint import (
    list_checkpoints as list_checkpoints,
    load_checkpoint as load_checkpoint,
    save_checkpoint as save_checkpoint,
)
from plainformer.training.evaluation import (
    accuracy as accuracy,
    corpus_bleu as corpus_bleu,
    corpus_chrf as corpus_chrf,
    corpus_loss as corpus_loss,
    mean_loss as mean_loss,
)
from plainformer.training.fit import FitResult as FitResult, TrainingInterrupted as TrainingInterrupted, fit as fit
from plainformer.training.losses import (
    bits_per_character as bits_per_character,
    cross_entropy as cross_entropy,
    next_token_loss as next_token_loss,
    perplexity as perplexity,
)
from plainformer.training.ngrams import NgramModel as NgramModel
from plainformer.training.operations import count_flops as count_flops, count_kept_bytes as count_kept_bytes
from plainformer.training.optimiser import (
    TrainingConfig as TrainingConfig,
    learning_rate_schedule as learning_rate_schedule,
    make_optimiser as make_optimiser,
)
from plainformer.training.saving import load_model as load_model, save_model as save_model
from plainformer.training.step import make_train_step as make_train_step
