"""Exercises of the chapter `tokens`: a training step, and a text cut into rows of questions."""
