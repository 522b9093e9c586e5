"""Patches: edits in order, checked, applied to documents, files and Python flows, and reverted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from weft.core.errors import BuildError, InputError
from weft.core.ports import ModelClient, ToolRunner
from weft.optimisation.edits.catalogue import UNCHANGED, read_edits
from weft.optimisation.edits.draft import places
from weft.optimisation.edits.edit import Edit
from weft.optimisation.edits.error import EditError
from weft.workflow import Flow, WorkflowDocument, load
from weft.workflow.document.python_types import PythonTypes
from weft.workflow.document.recursion import check_recursion
from weft.workflow.document.references import check_references
from weft.workflow.document.rewrite import document_diff, plain_document, rewritten, text_diff
from weft.workflow.document.spec.document import walk
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.compiled import check_unit
from weft.workflow.runtime.tools.toolset import Toolset

AnyFlow = Flow[Any, Any, ...]
_ABOUT = frozenset(("name", "description", "optimise"))
"""Keys of a document that change no result."""
P = TypeVar("P", WorkflowDocument, AnyFlow)


@dataclass(frozen=True, slots=True)
class Patch:
    """Edits of a document, in order. Nothing runs before all checks of `weft check` pass."""

    edits: tuple[Edit, ...] = ()

    @classmethod
    def of(cls, given: str | Sequence[object]) -> Patch:
        """The patch of a JSON text, or of its data. Raises: `EditError`."""
        return cls(read_edits(given))

    def plain(self) -> list[dict[str, Any]]:
        """The edits as JSON data, for `of`."""
        return [edit.plain() for edit in self.edits]

    @property
    def claims_no_change(self) -> bool:
        """Whether every edit claims that no value changes: `verify_unchanged` tests it."""
        return all(isinstance(edit, UNCHANGED) for edit in self.edits)

    def then(self, *edits: Edit) -> Patch:
        """This patch, and further edits."""
        return Patch((*self.edits, *edits))

    def apply(self, target: P, *, tools: ToolRunner | None = None) -> P:
        """`target` with the edits: a document, or a flow from a file or from Python.

        A flow is checked after each edit, as `weft check` does; a document for its structure.
        `tools` replace those of the flow. Raises: `EditError`, which names the edit and the node.
        """
        if isinstance(target, WorkflowDocument):
            return self._document(target, lambda _: None)
        unit = target.unit

        def check(document: WorkflowDocument) -> None:
            check_flow_of(with_document(unit, document), tools)

        made = with_document(unit, self._document(unit.document, check))
        return Flow.of(made)

    def apply_to_file(
        self, path: str | Path, *, out: str | Path | None = None, tools: ToolRunner | None = None
    ) -> AppliedPatch:
        """Write the edits into a workflow file, or into `out`; comments stay where nothing changed.

        `out` has to be in the same folder, because a workflow names files beside it. Raises:
        `EditError`, `InputError`, and as `weft.load`; the file then stays as it was.
        """
        file, written = Path(path), Path(path if out is None else out)
        check_beside(written, file)
        flow = load(file)
        assert flow.unit.origin is not None
        text = flow.unit.origin.source.text
        after = self.apply(flow, tools=tools)
        new = rewritten(text, flow.document, after.document)
        written.write_text(new, "utf-8")
        return AppliedPatch(self, written, text, new)

    def diff(self, target: WorkflowDocument | AnyFlow) -> str:
        """What the patch changes, as a unified diff of YAML texts. Raises: as `apply`."""
        if isinstance(target, WorkflowDocument):
            return document_diff(target, self.apply(target))
        return document_diff(target.document, self.apply(target).document)

    def _document(
        self, document: WorkflowDocument, check: Callable[[WorkflowDocument], None]
    ) -> WorkflowDocument:
        for edit in self.edits:
            document = edit.apply(document)
            try:
                check(document)
            except BuildError as error:
                node = error.node or edit.node
                raise EditError(
                    error.message, edit=edit.edit, node=node, hint=error.hint
                ) from error
        return document


@dataclass(frozen=True, slots=True)
class AppliedPatch:
    """A patch that was written into a file, with the texts before and after."""

    patch: Patch
    file: Path
    before: str
    after: str

    def diff(self) -> str:
        """What it changed, as a unified diff."""
        return "\n".join(text_diff(self.before, self.after, self.file.name, self.file.name))

    def revert(self) -> None:
        """Give the file the text from before the edits. Raises: `EditError` if it was changed."""
        if self.file.read_text("utf-8") != self.after:
            hint = "revert it by hand, with the diff"
            raise EditError(f"{self.file.name} was changed since", edit="revert", hint=hint)
        self.file.write_text(self.before, "utf-8")


def check_beside(out: Path, file: Path) -> None:
    """Raises: `InputError` where `out` is in another folder than the workflow `file`."""
    if out.resolve().parent != file.resolve().parent:
        hint = f"such as {file.with_name(out.name)}: a workflow names files beside it"
        raise InputError(f"{out} is in another folder than {file}", hint=hint)


def with_document(unit: Unit, document: WorkflowDocument) -> Unit:
    """`unit` with another document: its folder, functions, clients and Python types stay.

    Types of nodes stay where the node has its name and kind. Raises: `BuildError` for a workflow
    that runs itself.
    """
    if unit.runs_itself:
        raise BuildError("a workflow that runs itself cannot be edited", hint="edit its parts")
    types = _types(unit, document)
    return replace(unit, document=document, origin=None, types=types)


def _types(unit: Unit, document: WorkflowDocument) -> PythonTypes:
    old = unit.types
    if not (old.answers or old.arguments):
        return old
    before = dict(walk(unit.document.nodes))
    made = replace(old, answers={}, arguments={})
    for path, step in walk(document.nodes):
        known = before.get(path)
        if known is not None and known.kind == step.kind:
            if id(known) in old.answers:
                made.answers[id(step)] = old.answers[id(known)]
            if id(known) in old.arguments:
                made.arguments[id(step)] = old.arguments[id(known)]
    return made


def check_flow_of(
    unit: Unit,
    tools: ToolRunner | None = None,
    models: Mapping[str, ModelClient] | None = None,
) -> None:
    """All checks of `weft check`, for a document that was made in memory. Raises: `BuildError`."""
    check_references(unit)
    check_recursion(unit)
    check_unit(unit, Toolset(tools), models)


def document_digest(document: WorkflowDocument) -> str:
    """SHA-256 in hex of what the document computes: equal documents are one candidate.

    The order of nodes does not count, where no `break` stands among them; that of the fields of an
    answer does.
    """
    raw = plain_document(document)
    content = {key: value for key, value in raw.items() if key not in _ABOUT}
    return hashlib.sha256(json.dumps(_canonical(content)).encode()).hexdigest()


def _canonical(value: Any, key: str = "") -> Any:
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if not isinstance(value, dict):
        return value
    ordered = key == "schema" or (
        key == "nodes"
        and any(isinstance(step, dict) and "break" in step for step in value.values())
    )
    items = [
        [name, value[name] if key == "schema" else _canonical(value[name], name)] for name in value
    ]
    return {"": items if ordered else sorted(items, key=lambda item: str(item[0]))}


def addresses(document: WorkflowDocument) -> tuple[str, ...]:
    """The addresses of all nodes, for edits."""
    return tuple(places(plain_document(document)))
