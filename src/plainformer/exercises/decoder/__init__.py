"""Exercises of the chapter `decoder`: how wrong a model is, and what to do with its logits."""
