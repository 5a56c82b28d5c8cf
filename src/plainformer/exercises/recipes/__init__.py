"""Exercises of the chapter `recipes`."""
