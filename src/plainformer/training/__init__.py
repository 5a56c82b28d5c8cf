"""Losses, the training loop, and saving what it learned (chapter 06)."""
