"""A document with its folder, the files it includes, and the objects of its Python program.

Errors of a unit name the position of the defect in its file.
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
from weft.workflow.document.python_types import PythonTypes
from weft.workflow.document.remedies import braces
from weft.workflow.document.source import KeyPath, SourceText, Tree
from weft.workflow.document.source.tree import place_of

ONLY_PYTHON = "<python>:"
"""Prefix of references to objects of a Python program; impossible in a file."""


@dataclass(frozen=True, slots=True)
class DocumentOrigin:
    """The text that a document was read from."""

    source: SourceText
    tree: Tree


@dataclass(slots=True)
class UnitMemo:
    """Caches of a unit: see `weft.workflow.runtime.tools.functions` and `.compiled`.

    `tools`: by name, each with the function or tool it was made of. `checked`: the latest
    `CheckedFlow`s. `templates`: its parsed templates, kept alive. `runs_itself`: see `Unit`.
    """

    tools: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    checked: list[Any] = field(default_factory=list)
    templates: set[Template] = field(default_factory=set)
    runs_itself: bool | None = None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Unit:
    """A document that can be checked and run.

    Relative paths start in `folder`; included files are in `root` or below. `functions` and
    `clients` are objects of a Python program that a file cannot name, and `types` its types.
    """

    document: WorkflowDocument
    folder: Path
    root: Path
    origin: DocumentOrigin | None = None
    includes: Mapping[str, Unit] = field(default_factory=dict)
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    clients: Mapping[str, ModelClient] = field(default_factory=dict)
    types: PythonTypes = field(default_factory=PythonTypes)
    memo: UnitMemo = field(default_factory=UnitMemo, init=False, repr=False)

    def everything(self) -> list[Unit]:
        """The unit and all units that it includes, each once."""
        if not self.includes:
            return [self]
        units = {self: None}
        todo = [self]
        for unit in todo:
            new = [other for other in unit.includes.values() if other not in units]
            todo += dict.fromkeys(new)
            units.update(dict.fromkeys(new))
        return list(units)

    @property
    def runs_itself(self) -> bool:
        """Whether it includes itself, directly or through others."""
        if self.memo.runs_itself is None:
            others = {unit for each in self.everything() for unit in each.includes.values()}
            self.memo.runs_itself = self in others
        return self.memo.runs_itself

    @property
    def in_python(self) -> bool:
        """Whether it was written in Python, not read from a text."""
        return self.origin is None

    def fail(
        self,
        error: BuildError,
        path: KeyPath,
        *,
        at_key: bool = False,
        line: int = 1,
        word: str | None = None,
    ) -> NoReturn:
        """Raise `error` for the value at `path`; as a `SourceError` if there is a file.

        `line` (from 1) and `word` are the position inside a text.
        """
        if error.node is None:
            error.node = node_name(path)
        if self.origin is None:
            error.path = path
            raise error
        source = self.origin.source
        place = place_of(self.origin.tree, path, key=at_key)
        if not at_key:
            place = source.within(place, line, word)
        located = source.error(error.message, place, error.hint)
        located.node, located.path = error.node, path
        raise located from error

    def line_of(self, path: KeyPath) -> str | None:
        """The file and the line of the value at `path`, as `flow.yaml:3`; None without a file."""
        if self.origin is None:
            return None
        return f"{self.origin.source.file}:{place_of(self.origin.tree, path).line}"

    def fail_in(self, error: BadExpression, path: KeyPath) -> NoReturn:
        """Raise the error of a template in the value at `path`."""
        if error.in_text:
            error.hint = f"{error.hint}; {braces(in_python=self.in_python)}"
        self.fail(error, (*path, *error.path), line=error.line, word=error.word)


def node_name(path: KeyPath) -> str | None:
    """The name of the node at a path, such as `notes/draft`."""
    names = [str(path[i + 1]) for i in range(len(path) - 1) if path[i] == "nodes"]
    return "/".join(names) or None


def file_beside(unit: Unit, text: str, hint: str = "keep the file beside the workflow") -> Path:
    """The file that `text` names in `unit`, with symbolic links resolved.

    Raises: `BuildError`, with `hint`, for a file outside the root folder.
    """
    try:
        file = (unit.folder / text).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise BuildError(f"{text!r} is not the path of a file: {error}") from error
    if Path(text).is_absolute() or not file.is_relative_to(unit.root):
        raise BuildError(f"{text} leads out of the workflow's folder", hint=hint)
    return file
