"""Single values of a YAML text replaced in place: every other byte of the text stays.

`weft.workflow.document.rewrite` writes a changed document, this a changed text: the text need not
be a valid workflow.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from weft.core.errors import BuildError, SourceError
from weft.core.ids import is_name
from weft.workflow.document.source import KeyPath, read_text
from weft.workflow.document.source.tree import plain
from weft.workflow.document.writer import styled

REMOVED: Final = object()
"""The value of a key that is to be left out."""
_REFUSED: Final = "this value cannot be replaced in the text"


@dataclass(frozen=True, slots=True)
class TextEdit:
    """The characters from `start` to `end` of a text become `text`."""

    start: int
    end: int
    text: str


def spliced(text: str, changes: Mapping[KeyPath, Any]) -> str:
    """`text` with the value at each path replaced, added, or left out where it is `REMOVED`.

    All but the last key of a path lead to a mapping that exists.

    Raises: `SourceError` for a text that is not YAML, `BuildError` for a value that cannot be
    replaced: in an alias, or the only key of a mapping.
    """
    before = plain(read_text(text, "<text>")[1])
    root = YAML(typ="safe", pure=True).compose(text)
    edits = [_edit(text, root, path, value) for path, value in changes.items()]
    new = text
    for edit in sorted(edits, key=lambda each: each.start, reverse=True):
        new = new[: edit.start] + edit.text + new[edit.end :]
    try:
        found = plain(read_text(new, "<text>")[1])
    except SourceError as error:
        raise BuildError(f"{_REFUSED}: {error.message}", hint="write aliases out") from error
    if found != changed(before, changes):
        raise BuildError(_REFUSED, hint="write aliases out")
    return new


def changed(raw: Any, changes: Mapping[KeyPath, Any]) -> Any:
    """A copy of the plain data `raw` with `changes`, as of `spliced`."""
    new = json.loads(json.dumps(raw))
    for path, value in changes.items():
        owner = new
        for key in path[:-1]:
            owner = owner[key]
        if value is REMOVED:
            owner.pop(path[-1], None)
        else:
            owner[path[-1]] = value
    return new


def _edit(text: str, root: Node, path: KeyPath, value: Any) -> TextEdit:
    mapping, flow = _mapping(root, path[:-1])
    entries: list[tuple[Node, Node]] = mapping.value
    at = next((n for n, (key, _) in enumerate(entries) if key.value == path[-1]), None)
    if at is None:
        return _added(text, mapping, str(path[-1]), value, flow=flow)
    if value is REMOVED:
        return _removed(text, entries, at, flow=flow)
    key, old = entries[at]
    start, end = key.start_mark.index, _end(text, key, old, flow=flow)
    name = text[start : key.end_mark.index]
    return TextEdit(start, end, _entry(text, name, value, key, end, flow=flow))


def _mapping(root: Node, path: Iterable[str | int]) -> tuple[MappingNode, bool]:
    """The mapping at `path`, and whether it is written in braces. Raises: `BuildError`."""
    node, flow = root, _is_inline(root)
    for part in path:
        found = None
        if isinstance(node, MappingNode):
            found = next((value for key, value in node.value if key.value == part), None)
        elif isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
            found = node.value[part]
        if found is None or found.start_mark.index < node.start_mark.index:
            raise BuildError(_REFUSED, hint="write aliases out")
        node, flow = found, flow or _is_inline(found)
    if not isinstance(node, MappingNode):
        raise BuildError(f"{_REFUSED}: it is in no mapping")
    return node, flow


def _is_inline(node: Node) -> bool:
    """Whether a mapping or a list is written in braces or brackets."""
    return isinstance(node, MappingNode | SequenceNode) and bool(node.flow_style)


def _added(text: str, mapping: MappingNode, name: str, value: Any, *, flow: bool) -> TextEdit:
    entries = mapping.value
    key = json.dumps(name) if not is_name(name) else name
    start = mapping.start_mark.index
    if flow and text[start] != "{":  # a pair in a list, without braces
        end = entries[-1][1].end_mark.index
        return TextEdit(start, end, f"{{{text[start:end]}, {key}: {_inline(value)}}}")
    if flow:
        at = entries[-1][1].end_mark.index if entries else start + 1
        return TextEdit(at, at, f"{', ' if entries else ''}{key}: {_inline(value)}")
    last, old = entries[-1]
    at = _end(text, last, old, flow=False)
    shown = _entry(text, key, value, last, len(text), flow=False)
    return TextEdit(at, at, f"\n{' ' * last.start_mark.column}{shown}")


def _removed(text: str, entries: list[tuple[Node, Node]], at: int, *, flow: bool) -> TextEdit:
    if len(entries) == 1:
        raise BuildError(f"{_REFUSED}: a mapping needs a key")
    key, old = entries[at]
    if at > 0:
        last, before = entries[at - 1]
        end = _end(text, key, old, flow=flow)
        if not flow:  # with the comment behind it
            end += len(text[end:].partition("\n")[0])
        return TextEdit(_end(text, last, before, flow=flow), end, "")
    return TextEdit(key.start_mark.index, entries[1][0].start_mark.index, "")


def _end(text: str, key: Node, value: Node, *, flow: bool) -> int:
    """Where an entry ends: after its value, before the line break and comments that follow."""
    colon = text.index(":", key.end_mark.index) + 1
    end: int = max(colon, value.end_mark.index)
    if flow or end == colon:
        return end
    lines = text[colon:end].split("\n")
    while len(lines) > 1 and _is_beside(lines[-1], key.start_mark.column):
        lines.pop()
    return colon + len("\n".join(lines).rstrip(" ") if len(lines) > 1 else lines[0].rstrip())


def _is_beside(line: str, column: int) -> bool:
    """Whether a line is no part of an entry whose key begins in `column`."""
    shown = line.lstrip(" ")
    return not shown or (shown.startswith("#") and len(line) - len(shown) <= column)


def _entry(text: str, name: str, value: Any, key: Node, end: int, *, flow: bool) -> str:
    """An entry as text, in the column of `key`; on one line where something follows its value."""
    column = key.start_mark.column
    follows = text[end:].partition("\n")[0].strip()
    if flow or follows:
        return f"{name}: {_inline(value)}"
    yaml = YAML()
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump(CommentedMap({"k": styled(value, column + 2 + len(name))}), stream)
    first, *others = stream.getvalue().removesuffix("\n").split("\n")
    lines = [f"{name}{first[1:]}", *(f"{' ' * column}{line}" if line else "" for line in others)]
    return "\n".join(lines)


def _inline(value: Any) -> str:
    """A value on one line, in braces: JSON with plain keys."""
    if isinstance(value, dict):
        pairs = (f"{k if is_name(k) else _quoted(k)}: {_inline(v)}" for k, v in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())
