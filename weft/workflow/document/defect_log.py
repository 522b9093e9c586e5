"""The defects that one pass over a workflow finds: collected, and raised as one error."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from weft.core.errors import BuildError, SourceError
from weft.workflow.document.source import KeyPath

_UNKNOWN: dict[str, Any] = {"ask": "?", "schema": {}}
"""Stands for a node with a defect: its value may be anything."""


class DefectLog:
    """Collects each `BuildError` that is raised inside `with log:`, and goes on after it."""

    def __init__(self) -> None:
        self.found: list[BuildError] = []

    def __enter__(self) -> DefectLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        if not isinstance(error, BuildError):
            return False
        new = error.defects
        self.found += [each for each in new if str(each) not in map(str, self.found)]
        return True

    def finish(self) -> None:
        """Raise the first defect, which has all others in `defects`; nothing without any.

        They are ordered by file, line and column; those without a position as they were found.
        """
        if not self.found:
            return
        files = [e.file for e in self.found if isinstance(e, SourceError)]
        first, *others = sorted(self.found, key=lambda error: _position(error, files))
        first.others = tuple(others)
        for other in others:
            first.add_note(f"also: {other}")
        raise first


def _position(error: BuildError, files: list[str]) -> tuple[int, int, int]:
    if not isinstance(error, SourceError):
        return (0, 0, 0)
    return (files.index(error.file), error.line, error.column)


def without(raw: Any, paths: list[KeyPath]) -> Any:
    """A copy of the document `raw` in which the part around each of `paths` has no defect.

    A node becomes one whose value is unknown. An unknown key elsewhere is left out.
    """
    copy = _copy(raw)
    for path in paths:
        _replace(copy, path)
    return copy


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _replace(raw: Any, path: KeyPath) -> None:
    end = max((end for end in range(2, len(path) + 1) if _is_node(path[:end])), default=0)
    owner = _at(raw, path[: end - 1] if end else path[:-1])
    if not isinstance(owner, dict) or not path:
        return
    if end:
        owner[path[end - 1]] = dict(_UNKNOWN)
    elif path[0] == "outputs" and len(path) > 1:
        raw["outputs"][path[1]] = None
    else:
        owner.pop(path[-1], None)


def _is_node(path: KeyPath) -> bool:
    return path[0] == "nodes" and (
        path[-2] in ("nodes", "cases") or (path[-1] in ("do", "loop") and path[-2] != "with")
    )


def _at(raw: Any, path: KeyPath) -> Any:
    for key in path:
        try:
            raw = raw[key]
        except (LookupError, TypeError):
            return None
    return raw
