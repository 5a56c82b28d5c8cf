"""Exercises of the chapter `encoder`: tokens hidden by the rule, a loss over the hidden ones, one vector per text."""
