"""A parsed YAML document as a tree in which every key and value knows its position."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from weft.core.errors import SourceError

KeyPath = tuple[str | int, ...]
"""The way from the top of a document to a value in it: keys and indices."""


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A position; both numbers count from 1. `block` marks a literal block scalar (`|`)."""

    line: int = 1
    column: int = 1
    block: bool = False


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text and the name of its file."""

    file: str
    text: str

    def error(self, message: str, place: SourcePosition, hint: str | None = None) -> SourceError:
        """A `SourceError` at `place`; the caller raises it."""
        return SourceError(message, file=self.file, line=place.line, column=place.column, hint=hint)

    def within(
        self, place: SourcePosition, line: int = 1, word: str | None = None
    ) -> SourcePosition:
        """The place of `word` on line `line` (from 1) of the scalar that starts at `place`.

        Exact for block scalars and for scalars on one line, else the start of the scalar.
        """
        lines = self.text.splitlines()
        row = place.line + line if place.block else place.line
        if row > len(lines) or (line > 1 and not place.block):
            return place
        text = lines[row - 1]
        first = 0 if place.block else place.column - 1
        found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text[first:]) if word else None
        if found is not None:
            return SourcePosition(row, first + found.start() + 1)
        if not place.block:
            return place
        return SourcePosition(row, len(text) - len(text.lstrip()) + 1)


Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class YamlScalar:
    """A single value: None, a truth value, a number or a text."""

    value: bool | int | float | str | None
    place: SourcePosition


@dataclass(frozen=True, slots=True)
class YamlSequence:
    """A list."""

    items: tuple[Tree, ...]
    place: SourcePosition


@dataclass(frozen=True, slots=True)
class YamlMapping:
    """A mapping. Keys are texts, each once, in the order of the file."""

    entries: tuple[tuple[str, SourcePosition, Tree], ...]
    place: SourcePosition


Tree = YamlScalar | YamlSequence | YamlMapping


def plain(tree: Tree) -> Json:
    """The tree without its places: what `json` would load."""
    match tree:
        case YamlScalar(value):
            return value
        case YamlSequence(items):
            return [plain(item) for item in items]
        case YamlMapping(entries):
            return {key: plain(value) for key, _, value in entries}


def step(tree: Tree, key: str | int) -> tuple[SourcePosition, Tree] | None:
    """The place of the key and the value under `key`, or None when there is none."""
    if isinstance(tree, YamlMapping):
        found = ((place, value) for name, place, value in tree.entries if name == key)
        return next(found, None)
    if isinstance(tree, YamlSequence) and isinstance(key, int) and 0 <= key < len(tree.items):
        return tree.items[key].place, tree.items[key]
    return None


def place_of(tree: Tree, path: KeyPath, *, key: bool = False) -> SourcePosition:
    """Where the value at `path` stands (or its key), or the nearest enclosing one that exists."""
    place = tree.place
    for part in path:
        found = step(tree, part)
        if found is None:
            return place
        key_place, tree = found
        place = key_place if key else tree.place
    return place


def walk(tree: Tree) -> Iterator[Tree]:
    """The tree and everything in it."""
    yield tree
    match tree:
        case YamlSequence(items):
            for item in items:
                yield from walk(item)
        case YamlMapping(entries):
            for _, _, value in entries:
                yield from walk(value)
