"""Exercises of the chapter `serving`."""
