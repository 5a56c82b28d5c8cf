"""Whole models: decoder, encoder, encoder and decoder, vision transformer (chapters 06 to 13)."""
