"""Exercises of the chapter `generation`: what to do with logits, and a step of a beam search."""
