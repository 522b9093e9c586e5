"""Modules whose names are loaded at first use, so that importing them stays cheap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    module: str, names: Mapping[str, str], modules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of `module`.

    names: the module that defines them, to names separated by spaces; modules: inside it.
    """
    homes = {name: home for home, listed in names.items() for name in listed.split()}

    def load(name: str) -> Any:
        if name in modules:
            return import_module(f"{module}.{name}")
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(home), name)

    return load, lambda: sorted(sys.modules[module].__all__)
