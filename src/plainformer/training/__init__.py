"""Losses, the training loop, and saving what it learned (chapter 06)."""

from plainformer.training.fit import FitResult as FitResult, TrainingInterrupted as TrainingInterrupted, fit as fit
from plainformer.training.losses import (
    bits_per_character as bits_per_character,
    corpus_loss as corpus_loss,
    cross_entropy as cross_entropy,
    next_token_loss as next_token_loss,
    perplexity as perplexity,
)
from plainformer.training.ngrams import NgramModel as NgramModel
from plainformer.training.optimiser import (
    TrainingConfig as TrainingConfig,
    learning_rate_schedule as learning_rate_schedule,
    make_optimiser as make_optimiser,
)
from plainformer.training.saving import (
    list_checkpoints as list_checkpoints,
    load_checkpoint as load_checkpoint,
    load_model as load_model,
    save_checkpoint as save_checkpoint,
    save_model as save_model,
)
from plainformer.training.step import make_train_step as make_train_step
