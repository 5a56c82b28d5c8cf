"""Exercises of the chapter `dynamics`: the Cayley transform, and a step that keeps volumes."""
