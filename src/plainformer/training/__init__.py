"""Losses, the training loop, and saving what it learned (chapter 06)."""

from plainformer.training.fit import FitResult as FitResult, TrainingInterrupted as TrainingInterrupted, fit as fit
from plainformer.training.losses import (
    bits_per_character as bits_per_character,
    cross_entropy as cross_entropy,
    mean_next_token_loss as mean_next_token_loss,
    next_token_loss as next_token_loss,
    perplexity as perplexity,
)
from plainformer.training.ngrams import NgramModel as NgramModel
from plainformer.training.optimiser import (
    TrainingConfig as TrainingConfig,
    learning_rate_schedule as learning_rate_schedule,
    new_optimiser as new_optimiser,
)
from plainformer.training.saving import load_model as load_model, save_model as save_model
