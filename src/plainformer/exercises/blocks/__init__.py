"""Exercises of the chapter `blocks`: layer norm, the feed-forward network and the pre-norm block."""
