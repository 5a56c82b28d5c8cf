"""Exercises of the chapter `inside`: a silent head, rows of another run, the effect of a patch, an induction score."""
