"""Data to learn from: texts, images, dates and names, and files of your own."""
