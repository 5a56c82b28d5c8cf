"""Exercises of the chapter `finetuning`: an adapter, its merging, the places of an answer, a loss of preferences."""
