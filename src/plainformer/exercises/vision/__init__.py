"""Exercises of the chapter `vision`: how an image becomes rows, and how attention is followed through the layers."""
