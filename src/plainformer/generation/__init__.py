"""Writing texts: sampling, beam search, translation (chapters 06 and 08)."""
