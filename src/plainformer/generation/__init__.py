"""Writing texts: sampling, beam search, translation (chapters 07 and 09)."""
