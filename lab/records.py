"""Where a recorded run keeps what it found: `lab/<name>/record.json`."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LAB, BUILD = ROOT / "lab", ROOT / "build" / "models"
INDEX = ROOT / "src" / "plainformer" / "data" / "stored.json"


def write_record(name: str, numbers: dict, run: Any, made: dict | None = None) -> None:
    """Write `lab/<name>/record.json`, which `pf.data.load_record` reads.

    To what was measured the record adds `facts`, texts and tables as chapters say them by the role `fact` and the
    directive `facts`; `made`, how long it took and with which versions, or what the record said of that before; and
    `weights`, the checksums of what is stored beside it.
    """
    file, found = LAB / name / "record.json", json.loads(json.dumps(numbers))  # as it will be read
    record = dict(found)
    if hasattr(run, "facts"):
        record["facts"] = named(run.facts(found))
    if made is None and file.exists():
        made = json.loads(file.read_text(encoding="utf-8")).get("made")
    if made is not None:
        record["made"] = made
    if weights := {each.name: checksum(each) for each in sorted(file.parent.glob("*.safetensors"))}:
        record["weights"] = weights
    file.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")


def measured(record: dict) -> dict:
    """What a run found, without what its record adds to it."""
    return {name: each for name, each in record.items() if name not in ("facts", "made", "weights")}


def checksum(file: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def checksums(folder: Path = LAB) -> dict[str, str]:
    """The SHA-256 of each record and of each file of weights, by its place in the repository."""
    files = sorted([*folder.glob("*/record.json"), *folder.glob("*/*.safetensors")])
    return {file.relative_to(folder.parent).as_posix(): checksum(file) for file in files}


def write_index() -> None:
    """Tell the package what is stored, where it finds it, and by which checksum it knows it."""
    INDEX.write_text(json.dumps(checksums(), indent=2) + "\n", encoding="utf-8")


def percent(share: float, digits: int = 0) -> str:
    """A share as a fact: in per cent, without the sign."""
    return f"{100 * share:.{digits}f}"


def ends(name: str, values: Iterable[float], form: str = ".2f") -> dict[str, str]:
    """The least and the largest of several seeds' numbers, as the facts `<name>.min` and `<name>.max`."""
    values = [*values]
    return {f"{name}.min": format(min(values), form), f"{name}.max": format(max(values), form)}


def at_most(number: float, digits: int) -> str:
    """A number rounded up, as a bound is said."""
    return f"{math.ceil(round(number * 10**digits, 6)) / 10**digits:.{digits}f}"  # 0.029 is 0.029, not 0.030


def named(facts: dict[str, str]) -> dict[str, str]:
    """Facts by names as chapters write them: "NTK-aware, 4.above" as `ntk_aware_4.above`.

    Raises:
        ValueError: if two would have the same name.
    """
    found = {re.sub(r"[^\w.]+", "_", name.lower()): text for name, text in facts.items()}
    if len(found) < len(facts):
        raise ValueError(f"Of {len(facts)} facts some have the same name, and {len(found)} are left: {sorted(facts)}")
    return found


def kept(path: Path, find: Callable[[], Any]) -> Any:
    """What was found when this was first asked, kept in a file, so that a run that was stopped goes on."""
    if not path.exists():
        found = json.dumps(find())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found, encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))
