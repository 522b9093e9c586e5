"""A parsed YAML document as a tree in which every key and value knows its position."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from weft.core.errors import SourceError

KeyPath = tuple[str | int, ...]
"""A path from the top of a document to a value: keys and indices."""


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
        """A `SourceError` at `place`, for the caller to raise."""
        return SourceError(message, file=self.file, line=place.line, column=place.column, hint=hint)

    def within(
        self, place: SourcePosition, line: int = 1, word: str | None = None
    ) -> SourcePosition:
        """The position of `word` on line `line` (from 1) of the scalar that starts at `place`.

        Exact for block scalars and for scalars on one line, else the start of the scalar.
        """
        lines = self.text.splitlines()
        row = place.line + line if place.block else place.line
        if row > len(lines) or (line > 1 and not place.block):
            return place
        text = lines[row - 1]
        first = 0 if place.block else place.column - 1
        match = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text[first:]) if word else None
        if match is not None:
            return SourcePosition(row, first + match.start() + 1)
        if not place.block:
            return place
        return SourcePosition(row, len(text) - len(text.lstrip()) + 1)


Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class YamlScalar:
    """A single value: None, a boolean, a number or a text."""

    value: bool | int | float | str | None
    place: SourcePosition


@dataclass(frozen=True, slots=True)
class YamlSequence:
    """A list."""

    items: tuple[Tree, ...]
    place: SourcePosition


@dataclass(frozen=True, slots=True)
class YamlMapping:
    """A mapping with unique text keys, in the order of the file."""

    entries: tuple[tuple[str, SourcePosition, Tree], ...]
    place: SourcePosition


Tree = YamlScalar | YamlSequence | YamlMapping


def plain(tree: Tree) -> Json:
    """The tree without positions, as `json` would load it."""
    match tree:
        case YamlScalar(value):
            return value
        case YamlSequence(items):
            return [plain(item) for item in items]
        case YamlMapping(entries):
            return {key: plain(value) for key, _, value in entries}


def step(tree: Tree, key: str | int) -> tuple[SourcePosition, Tree] | None:
    """The position of `key` and its value, or None when there is none."""
    if isinstance(tree, YamlMapping):
        return next(((place, value) for name, place, value in tree.entries if name == key), None)
    if isinstance(tree, YamlSequence) and isinstance(key, int) and 0 <= key < len(tree.items):
        return tree.items[key].place, tree.items[key]
    return None


def place_of(tree: Tree, path: KeyPath, *, key: bool = False) -> SourcePosition:
    """The position of the value (or key) at `path`, or of the nearest enclosing one that exists."""
    place = tree.place
    for part in path:
        entry = step(tree, part)
        if entry is None:
            return place
        key_place, tree = entry
        place = key_place if key else tree.place
    return place


def walk(tree: Tree) -> Iterator[Tree]:
    """The tree and all trees inside it."""
    yield tree
    match tree:
        case YamlSequence(items):
            for item in items:
                yield from walk(item)
        case YamlMapping(entries):
            for _, _, value in entries:
                yield from walk(value)
