"""All answers of `readers_answers_*`: right ones by exercise, wrong ones with words of the message."""

import importlib
from pathlib import Path

READERS = [importlib.import_module(file.stem) for file in sorted(Path(__file__).parent.glob("readers_answers_*.py"))]
RIGHT = [answer for reader in READERS for answer in reader.RIGHT]
WRONG = [answer for reader in READERS for answer in reader.WRONG]
