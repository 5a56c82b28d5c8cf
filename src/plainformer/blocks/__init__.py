"""The block and its parts (chapter 04)."""
