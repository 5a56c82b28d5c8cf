"""The exercise of the chapter `real_text`: a model that counts pairs."""
