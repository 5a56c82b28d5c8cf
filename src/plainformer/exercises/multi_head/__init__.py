"""Exercises of the chapter `multi_head`: several heads, and how a row is split among them."""
