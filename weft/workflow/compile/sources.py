"""The sources of a workflow for its record: the texts of its files, and digests of its code.

Reads files; runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

from weft.agents.tools.module import is_file
from weft.core.ports.journal import RunHeader
from weft.workflow.compile.identity import CodeDigests, identity_of
from weft.workflow.document.unit import ONLY_PYTHON, Unit
from weft.workflow.document.writer import to_yaml

CODE = "sha256:"
"""Prefix of the digest of a file or function whose content is not recorded."""
_WRITTEN: Final[WeakKeyDictionary[Unit, str]] = WeakKeyDictionary()


class SourceDigests:
    """Implements `Digests`: computes the digest of each file and function once.

    `found`: the digests by their names in a record. Without `functions`, digests are those of whole
    files, and of no modules, as in records of earlier versions of weft.
    """

    def __init__(self, *, functions: bool = True) -> None:
        self.found: dict[str, str | None] = {}
        self._functions = functions
        self._code = CodeDigests()

    def file(self, unit: Unit, path: str) -> str | None:
        name = _relative((unit.folder / path).resolve(), unit.root)
        return self._digest(name, lambda: self._code.file(unit, path))

    def function(self, unit: Unit, reference: str) -> str | None:
        if self._functions:
            name = _function_name(unit, reference)
            return self._digest(name, lambda: self._code.function(unit, reference))
        if reference.startswith("."):
            return self.file(unit, reference.rpartition(":")[0])
        return None

    def _digest(self, name: str, digest: Callable[[], str | None]) -> str | None:
        if name not in self.found:
            self.found[name] = digest()
        return self.found[name]


class RecordedDigests(SourceDigests):
    """Implements `Digests` with the digests in the record of a run."""

    def __init__(self, header: RunHeader) -> None:
        super().__init__(functions=_has_functions(header))
        self._recorded = digests_in(header.document)

    def _digest(self, name: str, digest: Callable[[], str | None]) -> str | None:  # noqa: ARG002
        return self._recorded.get(name)


def digests_like(header: RunHeader) -> SourceDigests:
    """Digests of the current files, of the same version as in the record."""
    return SourceDigests(functions=_has_functions(header))


def sources_of(unit: Unit, digests: SourceDigests) -> dict[str, str]:
    """The text of each document by its path in the workflow's folder, the workflow itself first.

    The files and functions that its nodes use are there too, as `sha256:` and a digest; functions
    as `tools.py:name`, `package.module:name` or `python/FLOW:name`.
    """
    for included in unit.everything():
        for step in included.document.nodes.values():
            identity_of(step, included, digests)
    return source_texts(unit, digests)


def source_texts(unit: Unit, digests: SourceDigests) -> dict[str, str]:
    """As `sources_of`, with the files and functions that `digests` has computed."""
    texts: dict[str, str] = {}
    for included in unit.everything():
        texts[_free(_place(included, unit.root), texts)] = _text(included)
    for name, digest in sorted(digests.found.items()):
        if digest is not None:
            texts[name] = CODE + digest
    return texts


def _text(unit: Unit) -> str:
    """The text of `unit`'s document; one that was made in Python is written once."""
    if unit.origin is not None:
        return unit.origin.source.text
    if unit not in _WRITTEN:
        _WRITTEN[unit] = to_yaml(unit.document)
    return _WRITTEN[unit]


def _function_name(unit: Unit, reference: str) -> str:
    source, _, name = reference.rpartition(":")
    if reference.startswith(ONLY_PYTHON):
        return f"python/{unit.document.name}:{name}"
    if is_file(source):
        return f"{_relative((unit.folder / source).resolve(), unit.root)}:{name}"
    return reference


def _has_functions(header: RunHeader) -> bool:
    names = (name.rpartition(":") for name in digests_in(header.document))
    return any(colon and name.isidentifier() for _, colon, name in names)


def is_from_file(unit: Unit) -> bool:
    """Whether the workflow was read from a file that still exists."""
    return unit.origin is not None and Path(unit.origin.source.file).is_file()


def texts_in(document: Mapping[str, str]) -> dict[str, str]:
    """The entries that are documents."""
    return {path: text for path, text in document.items() if not text.startswith(CODE)}


def digests_in(document: Mapping[str, str]) -> dict[str, str]:
    """The digests of the other entries, by name."""
    code = {path: text for path, text in document.items() if text.startswith(CODE)}
    return {path: text.removeprefix(CODE) for path, text in code.items()}


def _place(unit: Unit, root: Path) -> str:
    file = None if unit.origin is None else Path(unit.origin.source.file)
    if file is None or not file.is_file():
        return f"{unit.document.name}.yaml"
    return _relative(file.resolve(), root)


def _relative(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else file.as_posix()


def _free(name: str, taken: Mapping[str, str]) -> str:
    while name in taken:
        name = f"also-{name}"
    return name
