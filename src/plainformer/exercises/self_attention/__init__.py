"""Exercises of the chapter `self_attention`: scores, weights and attention."""
