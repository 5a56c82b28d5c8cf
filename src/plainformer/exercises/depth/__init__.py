"""The exercise of the chapter `depth`: how different the tokens are."""
