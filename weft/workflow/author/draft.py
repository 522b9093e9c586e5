"""The text of a workflow with its defects: what `weft check` finds, and edges that are not there.

Each defect names the part in which it is: a node by its address, or the outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from weft.core.errors import BuildError, SourceError
from weft.workflow.author.edges import document_edges
from weft.workflow.author.fields import OUTPUTS, node_paths
from weft.workflow.document.loader import load_text_partly
from weft.workflow.document.source import KeyPath, Tree, read_text
from weft.workflow.document.source.tree import place_of, plain
from weft.workflow.document.spec.document import node_address, walk
from weft.workflow.runtime.compiled import check_text

Edge = tuple[str, str]
"""The name of a node, an input or an item, and the address of the node that uses it."""


@dataclass(frozen=True, slots=True)
class DraftDefect:
    """One defect. `part`: an address, `outputs`, or empty where no part is named.

    `path` leads to the part, `key` is the key in it that is wrong, if one is.
    """

    part: str
    path: KeyPath
    message: str
    hint: str = ""
    key: str = ""
    line: int = 0

    def plain(self) -> dict[str, Any]:
        """As JSON data, which `defect_of` reads."""
        return {**asdict(self), "path": list(self.path)}

    def __str__(self) -> str:
        where = f"`{self.part}`: " if self.part else ""
        return f"{where}{self.message}" + (f" ({self.hint})" if self.hint else "")


def defect_of(raw: Mapping[str, Any]) -> DraftDefect:
    """The defect in plain data."""
    return DraftDefect(**{**raw, "path": tuple(raw["path"])})


def raw_document(text: str) -> Any:
    """The document in a text as plain data, checked or not. Raises: `SourceError`."""
    return plain(_tree(text))


@lru_cache(maxsize=8)
def _tree(text: str) -> Tree:
    """The tree of a text: several steps read the same one."""
    return read_text(text, "<text>")[1]


def find_defects(text: str, file: Path, edges: Sequence[Edge] = ()) -> list[DraftDefect]:
    """The defects of `text` as the file it is to be, and the `edges` that it lacks.

    Imports the tools that the text names, as `weft check` does.
    """
    try:
        check_text(text, file)
    except BuildError as error:
        found = [_located(each, text, file) for each in error.defects]
    else:
        found = []
    return [*found, *_lost(text, file, edges, {each.part for each in found})]


def _located(error: BuildError, text: str, file: Path) -> DraftDefect:
    hint = error.hint or ""
    line = error.line if isinstance(error, SourceError) else 0
    if isinstance(error, SourceError) and Path(error.file).resolve() != file.resolve():
        return DraftDefect("", (), f"{error.file}: {error.message}", hint, line=line)
    part, path = _part_at(error.path, text)
    key = error.path[len(path)] if len(error.path) > len(path) else ""
    return DraftDefect(part, path, error.message, hint, str(key), line)


def _part_at(path: KeyPath, text: str) -> tuple[str, KeyPath]:
    """The address and the path of the innermost node around `path`."""
    if path[:1] == (OUTPUTS,):
        return OUTPUTS, (OUTPUTS,)
    if path[:1] != ("nodes",):
        return "", ()
    try:
        nodes = list(node_paths(raw_document(text)))
    except SourceError:
        return "", ()
    around = [(node, address) for node, address in nodes if path[: len(node)] == node]
    node, address = max(around, key=lambda each: len(each[0]), default=((), ""))
    return address, node


def _lost(text: str, file: Path, edges: Sequence[Edge], wrong: set[str]) -> Iterator[DraftDefect]:
    """Edges that no expression of the node or inside it makes, at nodes without other defects."""
    if not edges:
        return
    try:
        unit, _ = load_text_partly(text, file)
    except BuildError:
        return
    there = document_edges(unit.document)
    whole = {node_address(path) for path, _ in walk(unit.document.nodes)}  # without what is wrong
    paths = {address: path for path, address in node_paths(raw_document(text))}
    for name, node in edges:
        users = [user for used, user in there if used == name]
        if node not in whole or node in wrong:
            continue
        if not any(user == node or user.startswith(f"{node}/") for user in users):
            path = paths[node]
            line = place_of(_tree(text), path, key=True).line
            yield DraftDefect(
                node, path, f"it does not use `{name}`", f"use it: {{{{ {name} }}}}", line=line
            )


def with_comments(text: str, defects: Sequence[DraftDefect]) -> str:
    """`text` with a comment above each part that has a defect, and at the top for the others."""
    lines = text.split("\n")
    tree = _tree(text)
    notes: dict[int, list[str]] = {}
    for defect in defects:
        line = place_of(tree, defect.path, key=True).line if defect.path else 1
        notes.setdefault(line, []).append(" ".join(str(defect).split()))
    for line in sorted(notes, reverse=True):
        at = lines[line - 1]
        column = " " * (len(at) - len(at.lstrip(" ")))
        lines[line - 1 : line - 1] = [f"{column}# weft write: {note}" for note in notes[line]]
    return "\n".join(lines)
