"""Exercises of the chapter `chatting`: a group of few bits, rows of rotary pairs, messages as one text."""
