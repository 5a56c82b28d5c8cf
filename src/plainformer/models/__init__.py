"""Whole models: decoder, encoder, encoder and decoder, vision transformer (chapters 07 to 14)."""
