"""Exercises of the chapter `tokens`: the ids of a text, and windows cut from a long row."""
