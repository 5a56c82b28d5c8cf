"""Exercises of the chapter `chatting`: a group of few bits, rows of rotary pairs, heads that find."""
