"""Dates, names and numbers in many languages, from what Babel and num2words know."""
