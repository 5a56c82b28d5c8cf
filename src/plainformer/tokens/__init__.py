"""From text, images and series to rows of a matrix (chapter on tokens)."""
