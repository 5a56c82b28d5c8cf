"""Exercises of the chapter `relations`: a kernel's weights, and messages on a graph."""
