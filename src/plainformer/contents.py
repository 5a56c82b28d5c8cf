"""What there is: names that are imported when they are asked for, and for `help(pf)` the first line of each."""

import ast
import functools
import importlib
import importlib.metadata
import inspect
from types import ModuleType
from typing import Any

ROOMS = (
    *("tokens", "attention", "seeing", "blocks", "positions", "models"),
    *("pretrained", "generation", "training", "data", "plots"),
)
MORE_ROOMS = ("exercises", "live", "checks")


class Rooms(ModuleType):
    """The package, whose rooms open when they are entered: who only attends imports no models."""

    @functools.cached_property
    def _modules(self) -> dict[str, str]:
        """The module of each name, from the imports in the package's source, which type checkers read, too."""
        nodes = ast.walk(ast.parse(inspect.getsource(self)))
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        found = {alias.asname: node.module for node in imports for alias in node.names}
        return {name: module for name, module in found.items() if name and module and name not in ROOMS}

    def __getattr__(self, name: str):
        if name in (*ROOMS, *MORE_ROOMS):
            return importlib.import_module(f"{self.__name__}.{name}")
        if name == "__version__":
            return importlib.metadata.version(self.__name__)
        if name.startswith("__") or name not in self._modules:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        found = getattr(importlib.import_module(self._modules[name]), name)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._modules, *ROOMS, *MORE_ROOMS})

    def _said(self) -> str:
        names = [*ROOMS, *self._modules]
        return f"{vars(self)['__doc__']}{contents({name: getattr(self, name) for name in names})}"

    __doc__: Any = property(_said)  # which is said when `help(pf)` asks for it


def contents(package: dict) -> str:
    """Name what a package offers, room by room: what it has of a room at its own top, then what the room has besides.

    Args:
        package: the names of the package, with all `ROOMS` among them.
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
