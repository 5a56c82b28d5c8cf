"""The book's schematics: `python -m drawings.draw` writes each public function's picture beside its module."""
