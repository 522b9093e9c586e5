"""Where the own lines of a document's parts are in its text, by positions alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weft.workflow.author.draft import raw_document
from weft.workflow.author.fields import OUTPUTS, at, body_paths, node_paths
from weft.workflow.document.source import KeyPath, Tree, YamlMapping, read_text
from weft.workflow.document.source.tree import place_of, step


def without_parts(text: str, parts: Iterable[str]) -> list[str]:
    """The lines of `text` without those of `parts`: of their keys and of their own fields.

    A part in braces has the line that it begins on. Comments and empty lines stay, but those inside
    of a field.
    """
    raw = raw_document(text)
    tree = read_text(text, "<text>")[1]
    paths = {address: path for path, address in node_paths(raw)} | {OUTPUTS: (OUTPUTS,)}
    lines = text.split("\n")
    own: set[int] = set()
    for part in parts:
        if part in paths:
            own |= {place_of(tree, paths[part], key=True).line}
            own |= set(_own_lines(lines, tree, paths[part], raw))
    return [line for number, line in enumerate(lines, 1) if number not in own]


def _own_lines(lines: list[str], tree: Tree, path: KeyPath, raw: object) -> Iterator[int]:
    found: Tree | None = tree
    for key in path:
        entry = None if found is None else step(found, key)
        found = None if entry is None else entry[1]
    if not isinstance(found, YamlMapping):
        return
    body_keys = (
        {below[0] for below, _ in body_paths(at(raw, path))} if path != (OUTPUTS,) else set()
    )
    for key, place, _ in found.entries:
        first = place.line
        last = _last(lines, first, place.column)
        if key not in body_keys:
            yield from range(first, last + 1)
            continue
        yield from (
            number
            for number in range(first, last + 1)
            if lines[number - 1].lstrip().startswith("result:")
        )


def _last(lines: list[str], first: int, column: int) -> int:
    """The last line of the entry whose key begins on line `first`."""
    last = first
    for number in range(first + 1, len(lines) + 1):
        line = lines[number - 1]
        shown = line.lstrip(" ")
        if not shown:
            continue
        if len(line) - len(shown) < column:
            break
        last = number
    return last
