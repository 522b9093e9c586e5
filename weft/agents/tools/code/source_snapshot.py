"""The files, folders and loaded packages that a digest of code was made of, as they were then.

Files are told apart as `parsed` does, folders as Python's import system does: by the time at which
a name in them changed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from pathlib import Path

_State = tuple[int, int, int] | None


class SourceSnapshot:
    """States of files, folders and packages, taken before they are read for a digest.

    `certain`: the digest depends on nothing else, such as an importer of the program's own.
    """

    def __init__(self) -> None:
        self.certain = True
        self._states: dict[str, _State] = {}
        self._loaded: dict[str, tuple[ModuleSpec, tuple[str, ...]]] = {}

    def path(self, path: Path | str) -> None:
        """A file that is read, or a folder in which modules are looked for."""
        name = str(path)
        if name not in self._states:
            self._states[name] = _state_of(name)

    def paths(self, paths: Iterable[str]) -> None:
        """Several of them."""
        for path in paths:
            self.path(path)

    def loaded(self, name: str, spec: ModuleSpec) -> None:
        """A package that the program has imported."""
        self._loaded[name] = spec, _folders_of(spec)

    def holds(self) -> bool:
        """Whether every file, folder and package is unchanged, so that the digest still holds."""
        for name, (spec, folders) in self._loaded.items():
            module = sys.modules.get(name)
            if module is None or module.__spec__ is not spec or _folders_of(spec) != folders:
                return False
        for path, state in self._states.items():  # noqa: SIM110 - each run looks at all of them
            if _state_of(path) != state:
                return False
        return True


def _folders_of(spec: ModuleSpec) -> tuple[str, ...]:
    return tuple(spec.submodule_search_locations or ())


def _state_of(path: str) -> _State:
    try:
        state = os.stat(path)  # noqa: PTH116 - each run looks at all of them
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
