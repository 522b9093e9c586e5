"""A document with its surroundings: its folder, what it includes, what exists only in Python.

Turns defects into errors that name their position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from weft.core.errors import BuildError
from weft.core.ports import ModelClient
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.expressions import BadExpression, Template
from weft.workflow.document.source import KeyPath, SourceText, Tree
from weft.workflow.document.source.tree import place_of

ONLY_PYTHON = "<python>:"
"""How references begin to what exists only in a Python program; no file could hold them."""


@dataclass(frozen=True, slots=True)
class DocumentOrigin:
    """The text that a document was read from."""

    source: SourceText
    tree: Tree


@dataclass(slots=True)
class UnitMemo:
    """What was made of a unit, for all who use it: see `weft.workflow.runtime.tools.functions` and
    `.compiled`.

    `tools`: by what they are called there, each with the function or tool it was made of. `checked`
    holds the latest `CheckedFlow`s. `templates` are its own, which are parsed once for that reason.
    """

    tools: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    checked: list[Any] = field(default_factory=list)
    templates: set[Template] = field(default_factory=set)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Unit:
    """A document that can be checked and run.

    `folder` is where relative paths start; included files lie in `root` or below. `functions` and
    `clients` hold what a program in Python uses without a name that a file could give.
    """

    document: WorkflowDocument
    folder: Path
    root: Path
    origin: DocumentOrigin | None = None
    includes: Mapping[str, Unit] = field(default_factory=dict)
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    clients: Mapping[str, ModelClient] = field(default_factory=dict)
    memo: UnitMemo = field(default_factory=UnitMemo, init=False, repr=False)

    def everything(self) -> list[Unit]:
        """The unit and all that it includes, each once."""
        found = [self]
        for unit in found:
            found.extend(other for other in unit.includes.values() if other not in found)
        return found

    def fail(
        self,
        error: BuildError,
        path: KeyPath,
        *,
        at_key: bool = False,
        line: int = 1,
        word: str | None = None,
    ) -> NoReturn:
        """Raise `error`, which happened at `path`; as a `SourceError` when there is a file.

        `line` (from 1) and `word` lead to the place inside a text.
        """
        if error.node is None:
            error.node = node_name(path)
        if self.origin is None:
            raise error
        source = self.origin.source
        place = place_of(self.origin.tree, path, key=at_key)
        if not at_key:
            place = source.within(place, line, word)
        located = source.error(error.message, place, error.hint)
        located.node = error.node
        raise located from error

    def fail_in(self, error: BadExpression, path: KeyPath) -> NoReturn:
        """Raise what is wrong with a template in the value at `path`."""
        self.fail(error, (*path, *error.path), line=error.line, word=error.word)


def node_name(path: KeyPath) -> str | None:
    """The node that a path leads into, such as `notes/draft`."""
    names = [str(path[i + 1]) for i in range(len(path) - 1) if path[i] == "nodes"]
    return "/".join(names) or None


def file_beside(unit: Unit, text: str, hint: str = "keep the file beside the workflow") -> Path:
    """The file that `text` means in `unit`, symbolic links followed.

    Raises: `BuildError`, with `hint`, when it leads out of the root folder.
    """
    try:
        file = (unit.folder / text).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise BuildError(f"{text!r} is not the path of a file: {error}") from error
    if Path(text).is_absolute() or not file.is_relative_to(unit.root):
        raise BuildError(f"{text} leads out of the workflow's folder", hint=hint)
    return file
