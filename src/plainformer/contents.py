"""What there is, for `help(pf)`: each name with the first line of its own docstring."""

ROOMS = ("tokens", "attention", "seeing", "blocks", "positions", "models", "generation", "training", "data", "plots")


def contents(package: dict) -> str:
    """Name what a package offers, room by room: what it has of a room at its own top, then what the room has besides.

    Args:
        package: the names of the package, as `globals()` has them there, with all `ROOMS` imported.
    """
    lines: list[str] = []
    for room in ROOMS:
        module, said = package[room], dict[object, str]()
        for place, names in {"pf": package, f"pf.{room}": vars(module)}.items():
            for name, each in names.items():
                if not name.startswith("_") and getattr(each, "__module__", "").startswith(module.__name__):
                    said.setdefault(each, f"    {place}.{name}: {_first_line(each)}")
        lines += ["", _first_line(module), *said.values()]
    return "\n".join(lines)


def _first_line(documented) -> str:
    return str(documented.__doc__).partition("\n")[0]  # under `python -OO` there are no docstrings
