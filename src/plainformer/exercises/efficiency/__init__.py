"""The exercises of the chapter on efficiency."""
