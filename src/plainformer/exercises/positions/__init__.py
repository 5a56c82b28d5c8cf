"""Exercises of the chapter `positions`: sinusoids and their shift, rotary positions and ALiBi."""
