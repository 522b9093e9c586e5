"""The defects that one pass over a workflow finds: collected, and raised as one error."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from weft.core.errors import BuildError, SourceError
from weft.workflow.document.source import KeyPath

_UNKNOWN: dict[str, Any] = {"ask": "?", "schema": {}}
"""Stands for a node with a defect: its value may be anything."""
_DECLARATIONS: dict[str, dict[str, Any]] = {
    "inputs": {},
    "models": {"use": "openai", "model": "unknown", "base_url": "http://127.0.0.1:9/v1"},
}
"""Stand for an input and a model with a defect."""


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

    A node becomes one whose value is unknown, and so do the nodes that use a model or a tool with
    a defect. An input becomes one of any type. A wrong key elsewhere is left out.
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
    if len(path) > 1 and path[0] in ("inputs", "models", "tools"):
        _repair(raw, path)
        return
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


def _repair(raw: Any, path: KeyPath) -> None:
    """Leave out one key of a declaration; or the declaration, with the nodes that use it."""
    section, name = str(path[0]), path[1]
    owner, declared = _at(raw, path[:-1]), raw.get(section)
    if len(path) > 2 and isinstance(owner, dict) and path[-1] in owner:
        del owner[path[-1]]
    elif isinstance(declared, dict) and name in declared:
        if section in _DECLARATIONS:
            declared[name] = dict(_DECLARATIONS[section])
        else:
            del declared[name]
        if section != "inputs":
            _forget(raw.get("nodes"), section.removesuffix("s"), str(name))


def _forget(part: Any, kind: str, name: str) -> None:
    """Make the nodes in `part` that use the model, the tool, or a tool of the server, unknown."""
    for key, value in part.items() if isinstance(part, dict) else ():
        if isinstance(value, dict) and name in _used(value, kind):
            part[key] = dict(_UNKNOWN)
        else:
            _forget(value, kind, name)


def _used(node: dict[str, Any], kind: str) -> set[str]:
    used = [node.get(kind)]
    if kind == "tool":
        for listed in (node.get("tools"), node.get("alternatives")):
            used += listed if isinstance(listed, list) else ()
    names = (each.get("tool") if isinstance(each, dict) else each for each in used)
    return {str(each).partition(".")[0] for each in names if each is not None}


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
