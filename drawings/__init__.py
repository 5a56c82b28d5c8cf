"""The book's schematics: `drawings.draw` gives each public function's picture by name."""
