"""Exercises of the primer: how wrong a model is, and a step that makes it less so."""
