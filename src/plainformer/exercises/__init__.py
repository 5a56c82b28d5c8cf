"""Checks for the reader's own code: what is wrong with it, said as a teacher would (all chapters)."""

from plainformer.exercises.check import ExerciseError, check

__all__ = ["ExerciseError", "check"]
