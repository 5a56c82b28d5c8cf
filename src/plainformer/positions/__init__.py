"""Ways to tell tokens where they stand (chapters 06 and 11)."""
