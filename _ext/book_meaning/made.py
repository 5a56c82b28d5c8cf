"""What is made before Sphinx looks for its pages: the schematics, and the cards of the recorded runs.

Neither is kept in the repository. A file that would be the same is left as it is, and what shows it need not be read
again.
"""

import os
import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config


def keep(folder: Path, kind: str, files: dict[str, str]) -> None:
    """Let a folder hold these texts, by name, and no other file of their kind."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob(f"*{kind}"):
        if file.name not in files:
            file.unlink(missing_ok=True)
    for name, text in files.items():
        file = folder / name
        if not file.exists() or file.read_text("utf-8") != text:
            new = file.with_name(f"{name}.{os.getpid()}.new")  # another process may be reading the old one
            new.write_text(text, "utf-8")
            new.replace(file)


def draw(root: Path) -> None:
    from drawings.draw import drawn

    keep(root / "drawings", ".svg", drawn())


def say(root: Path) -> None:
    """To say the cards takes some seconds: they are said when a record has changed, or what says it."""
    done, pages = root / "build" / "cards", root / "appendix" / "cards"
    files = sorted(file for kind in ("**/*.py", "*/record.json") for file in (root / "lab").glob(kind))
    said_of = "\n".join(f"{file.relative_to(root)} {file.stat().st_mtime_ns}" for file in files)
    if not pages.is_dir() or not done.exists() or done.read_text("utf-8") != said_of:
        from lab.cards import cards

        keep(pages, ".md", cards())
        done.parent.mkdir(exist_ok=True)
        done.write_text(said_of, "utf-8")


def make(app: Sphinx, config: Config) -> None:
    root = Path(app.srcdir)
    if (root / "lab" / "cards.py").is_file():
        sys.path.insert(0, str(root))
        draw(root)
        say(root)
    if "appendix/recorded_runs" in getattr(config, "external_site_map", ()):
        # It lists them, and the table of contents, from which they would be missed, does not.
        rest = [pattern for pattern in config["exclude_patterns"] if not pattern.startswith("appendix/cards/")]
        config["exclude_patterns"] = rest


def connect(app: Sphinx) -> None:
    app.connect("config-inited", make, priority=950)  # after the table of contents has been read, at 900
