"""Exercises of the chapter `pretrained`: matrices cut and turned, one block for all, a narrow table, a map."""
