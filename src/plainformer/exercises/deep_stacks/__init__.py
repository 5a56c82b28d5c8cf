"""The exercise of the chapter `deep_stacks`: how different the tokens are."""
