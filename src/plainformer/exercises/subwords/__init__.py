"""Exercises of the chapter `subwords`: the ids of a text, and windows cut from a long row."""
