"""Exercises of the chapter `inside`: a silent head, rows of another run, steering, effects, an induction score."""
