"""Exercises of the chapter `scaling_laws`: the best split of a given work, and how far runs are from a law."""
