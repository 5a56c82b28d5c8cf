"""Attention: one head, several heads, a cache, and where a model looks (chapters 02, 03, 07 and 10)."""
