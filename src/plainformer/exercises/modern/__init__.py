"""Exercises of the chapter `modern`."""
