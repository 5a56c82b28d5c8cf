"""Ways to tell tokens where they stand: one scheme a file (chapters 05 and 09)."""
