"""The exercise of the chapter `depth`: a stack of blocks."""
