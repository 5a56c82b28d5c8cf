"""Exercises of the chapter `scaling`: a product in summands, and the loss of a batch over devices."""
