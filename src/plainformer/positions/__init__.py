"""Ways to tell tokens where they stand (chapters 05 and 10)."""
