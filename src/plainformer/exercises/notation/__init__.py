"""Exercises of the chapter `notation`: attention and a linear layer where tokens are columns."""
