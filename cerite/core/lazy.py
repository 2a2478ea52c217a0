"""Public names that are imported when they are first used, so that importing a package costs nothing.

A package lists its names by the modules that define them, once for `__getattr__` and once, as imports under
`TYPE_CHECKING`, for type checkers; a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy(
    package: str,
    homes: Mapping[str, Iterable[str]],
    rooms: Iterable[str] = (),
    load: Callable[[str], Any] = import_module,
) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are in these modules below `cerite`; `rooms` are modules of its own.

    `load` imports a module: `extras.load` where one may need a package that is not installed.

    >>> lazy("cerite", {"core.match": ["Match"]})("Match").__name__
    'Match'
    >>> lazy("cerite", {}, ["errors"])("errors").__name__
    'cerite.errors'
    """
    modules = {name: f"cerite.{module}" for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name in rooms:
            return load(f"{package}.{name}")
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(load(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
