"""The exercise of the chapter `decoder`: the loss of a language model."""
