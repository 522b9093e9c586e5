"""Finds the source of a module without importing it, and takes snapshots of the files read.

Changes of files are detected as in `parsed`, those of folders as in Python's import system: by the
modification time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Final

_State = tuple[int, int, int] | None

FILE_PREFIX: Final = "weft_file_"


def is_of_file(name: str) -> bool:
    """Whether `weft.agents.tools.module` loaded the module `name` by file, or from its folder."""
    return name.startswith(FILE_PREFIX)


class SourceSnapshot:
    """The states of files, folders and packages, taken before a digest reads them.

    `certain`: the digest depends on nothing else, such as a custom importer.
    """

    def __init__(self) -> None:
        self.certain = True
        self._states: dict[str, _State] = {}
        self._loaded: dict[str, tuple[ModuleSpec, tuple[str, ...]]] = {}

    def path(self, path: Path | str) -> None:
        """Add a file that is read, or a folder that is searched."""
        name = str(path)
        if name not in self._states:
            self._states[name] = _state_of(name)

    def paths(self, paths: Iterable[str]) -> None:
        """Add several paths."""
        for path in paths:
            self.path(path)

    def loaded(self, name: str, spec: ModuleSpec) -> None:
        """Add a package that the program has imported."""
        self._loaded[name] = spec, _folders_of(spec)

    def holds(self) -> bool:
        """Whether every file, folder and package is unchanged, so that the digest is valid."""
        for name, (spec, folders) in self._loaded.items():
            module = sys.modules.get(name)
            if module is None or module.__spec__ is not spec or _folders_of(spec) != folders:
                return False
        for path, state in self._states.items():  # noqa: SIM110 - the loop is faster
            if _state_of(path) != state:
                return False
        return True


def _folders_of(spec: ModuleSpec) -> tuple[str, ...]:
    return tuple(spec.submodule_search_locations or ())


def _state_of(path: str) -> _State:
    try:
        state = os.stat(path)  # noqa: PTH116 - os.stat is faster
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


UNWATCHED: Final = sys.stdlib_module_names | {"weft"}
"""Packages whose code is covered by their version."""


@dataclass(frozen=True, slots=True)
class SourceModule:
    """An importable module: its name in its `SourcePackage`, and its file if it has one."""

    name: str
    file: Path | None
    is_package: bool

    @property
    def package(self) -> str:
        """The package for its relative imports."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class SourcePackage:
    """A top-level package `name` with all its modules.

    With a `folder` it is the files there, which import one another relatively and have no name.
    `basis` records the files and folders that are read.
    """

    name: str
    folder: Path | None = None
    basis: SourceSnapshot = field(default_factory=SourceSnapshot, compare=False, repr=False)

    def find(self, name: str) -> SourceModule | None:
        """The module `name` of this package, or None."""
        parts = name.split(".") if name else []
        if not parts or (self.folder is None and parts[0] != self.name):
            return None
        path = None if self.folder is None else [str(self.folder)]
        spec = None
        for part in parts:
            if path is None:
                spec = self._top(part)
            else:
                self.basis.paths(path)
                spec = PathFinder.find_spec(part, path)
            if spec is None:
                return None
            path = [*(spec.submodule_search_locations or ())]
        assert spec is not None
        file = Path(spec.origin) if spec.has_location and spec.origin is not None else None
        return SourceModule(name, file, spec.submodule_search_locations is not None)

    def target(self, module: SourceModule, name: str, level: int) -> str | None:
        """The module that `from {level dots}{name} import` means in `module`, or None.

        The folder itself is the empty name. None: a module of another package.
        """
        if level == 0:
            return name if self.folder is None and name.split(".")[0] == self.name else None
        parts = module.package.split(".") if module.package else []
        if level - 1 > len(parts):
            return None
        return ".".join((*parts[: len(parts) - level + 1], *([name] if name else [])))

    def _top(self, name: str) -> ModuleSpec | None:
        loaded = sys.modules.get(name)
        if loaded is not None and loaded.__spec__ is not None:
            self.basis.loaded(name, loaded.__spec__)
            return loaded.__spec__
        self.basis.certain = False
        for finder in sys.meta_path:
            spec = finder.find_spec(name, None)
            if spec is not None:
                return spec
        return None


def package_of(name: str, basis: SourceSnapshot) -> SourcePackage | None:
    """The package of the module `name`; None for an excluded one."""
    top = name.partition(".")[0]
    return None if top in UNWATCHED else SourcePackage(top, basis=basis)


def ancestors(name: str) -> Sequence[str]:
    """The enclosing packages of a module, the outermost first."""
    parts = name.split(".")
    return [".".join(parts[:depth]) for depth in range(1, len(parts))]
