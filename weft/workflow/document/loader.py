"""Workflow files to checked units, with all that they include. Imports no tools, runs nothing.

Defects raise a `SourceError` for the first, which has all in `defects`; the `__cause__` of each is
the particular error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from weft.core.errors import BuildError, SourceError, UnknownReference
from weft.workflow.document import ToolDocument, WorkflowDocument
from weft.workflow.document.defect_log import DefectLog, without
from weft.workflow.document.recursion import check_recursion
from weft.workflow.document.references import check_references
from weft.workflow.document.source import KeyPath, SourceText, Tree, read_file, read_text
from weft.workflow.document.source.tree import place_of, plain
from weft.workflow.document.spec.defects import all_defects
from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.nodes import WorkflowNode
from weft.workflow.document.unit import DocumentOrigin, Unit

_MAX_FILES = 100
_MOST_ATTEMPTS = 4

Read = Callable[[Path], tuple[SourceText, Tree]]


def load_unit(path: Path) -> Unit:
    """The checked workflow in the file. Raises: `SourceError`."""
    source, tree = read_file(path)
    folder = path.resolve().parent
    return _UnitLoader(folder).whole(source, tree, folder, path.resolve())


def load_partly(path: Path) -> tuple[Unit, DefectLog]:
    """As `load_unit`: the defects, and what is left without them. Raises: `SourceError`."""
    return _partly(*read_file(path), path)


def load_text_partly(text: str, path: Path) -> tuple[Unit, DefectLog]:
    """As `load_partly`, for the text that the file is to have."""
    return _partly(*read_text(text, str(path)), path)


def _partly(source: SourceText, tree: Tree, path: Path) -> tuple[Unit, DefectLog]:
    folder = path.resolve().parent
    loader = _UnitLoader(folder)
    return loader.partly(source, tree, folder, path.resolve()), loader.log


def load_tools(path: Path) -> Unit:
    """The workflow in the file, for its tools only: it may have no nodes. Raises: `SourceError`."""
    source, tree = read_file(path)
    raw = plain(tree)
    if isinstance(raw, Mapping) and "nodes" not in raw and raw.get("tools"):
        folder = path.resolve().parent
        return Unit(parse(source, tree, ToolDocument), folder, folder, DocumentOrigin(source, tree))
    return load_unit(path)


def load_text(text: str, file: str) -> Unit:
    """The checked workflow in `text`; relative paths are relative to the folder of `file`.

    Raises: `SourceError`.
    """
    source, tree = read_text(text, file)
    try:
        folder = Path(file).resolve().parent
    except (OSError, ValueError):  # an invalid file name
        folder = Path.cwd()
    return _UnitLoader(folder).whole(source, tree, folder, None)


def load_texts(texts: Mapping[str, str], folder: Path) -> Unit:
    """The checked workflow whose main file is the first of `texts`, by paths in `folder`.

    Reads no file. Raises: `SourceError`, also without texts.
    """
    if not texts:
        raise SourceError("no workflow was recorded", file="")
    root = folder.resolve()

    def read(file: Path) -> tuple[SourceText, Tree]:
        name = file.relative_to(root).as_posix()
        if name not in texts:
            raise SourceError("this file was not recorded", file=name)
        return read_text(texts[name], str(file))

    main = root / next(iter(texts))
    source, tree = read(main)
    return _UnitLoader(root, read).whole(source, tree, main.parent, main)


def parse(
    source: SourceText, tree: Tree, kind: type[WorkflowDocument] = WorkflowDocument
) -> WorkflowDocument:
    """The document of `tree`, with its structure checked. Raises: `SourceError`."""
    log = DefectLog()
    document = _parse(source, tree, kind, log)
    log.finish()
    assert document is not None
    return document


def _parse(
    source: SourceText, tree: Tree, kind: type[WorkflowDocument], log: DefectLog
) -> WorkflowDocument | None:
    """The document of `tree`, or what is left of it without the defects, which `log` takes."""
    raw = plain(tree)
    for attempt in range(_MOST_ATTEMPTS):
        try:
            return kind.model_validate(raw)
        except ValidationError as error:
            defects = all_defects(error, raw)
            for defect in defects if attempt == 0 else ():
                place = place_of(tree, defect.path, key=defect.at_key)
                located = source.error(defect.message, place, defect.hint)
                located.__cause__, located.path = error, defect.path
                log.found.append(located)
            raw = without(raw, [defect.path for defect in defects])
    return None


def _without_defects(unit: Unit, log: DefectLog, since: int) -> Unit:
    """`unit` without the nodes in which `log` has defects from number `since` on."""
    paths = [error.path for error in log.found[since:] if error.path]
    raw = unit.document.model_dump(mode="json", by_alias=True, exclude_unset=True)
    try:
        document = WorkflowDocument.model_validate(without(raw, paths))
    except ValidationError:
        return unit
    return replace(unit, document=document)


class _UnitLoader:
    """Loads one file and all that it includes; each file is read once."""

    def __init__(self, root: Path, read: Read = read_file) -> None:
        self._root = root
        self._read = read
        self._units: dict[Path, Unit] = {}
        self.log = DefectLog()

    def whole(self, source: SourceText, tree: Tree, folder: Path, file: Path | None) -> Unit:
        """The unit of one file, with all that it includes."""
        unit = self.partly(source, tree, folder, file)
        self.log.finish()
        return unit

    def partly(self, source: SourceText, tree: Tree, folder: Path, file: Path | None) -> Unit:
        """As `whole`; `log` has the defects, and the unit is what is left without them."""
        unit = self._unit(source, tree, folder, file)
        if not self.log.found:
            with self.log:
                check_recursion(unit)
        return unit

    def _unit(self, source: SourceText, tree: Tree, folder: Path, file: Path | None) -> Unit:
        document = _parse(source, tree, WorkflowDocument, self.log)
        if document is None:
            self.log.finish()
            raise AssertionError(file)
        included: dict[str, Unit] = {}
        unit = Unit(document, folder, self._root, DocumentOrigin(source, tree), included)
        if file is not None:
            self._units[file] = unit  # it may include itself
        since = len(self.log.found)
        for path, step in walk(unit.document.nodes):
            if isinstance(step, WorkflowNode):
                with self.log:
                    where = (*path, "workflow")
                    included[step.workflow] = self._include(unit, step.workflow, where)
        check_references(unit, self.log)
        if len(self.log.found) > since:
            unit = _without_defects(unit, self.log, since)
            if file is not None:
                self._units[file] = unit
        return unit

    def _include(self, by: Unit, name: str, path: KeyPath) -> Unit:
        file = self._file(by, name, path)
        if file in self._units:
            return self._units[file]
        if len(self._units) >= _MAX_FILES:
            by.fail(BuildError(f"more than {_MAX_FILES} files are included"), path)
        try:
            source, tree = self._read(file)
        except SourceError as error:
            if file.exists():
                raise
            hint = f"it is looked for in {by.folder}"
            by.fail(UnknownReference(f"there is no file {name!r}", hint=hint), path)
            raise AssertionError from error
        return self._unit(source, tree, file.parent, file)

    def _file(self, by: Unit, name: str, path: KeyPath) -> Path:
        try:
            file = (by.folder / name).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            by.fail(UnknownReference(f"{name!r} is not a path: {error}"), path)
        if not file.is_relative_to(self._root):
            hint = f"included workflows stay in {self._root}, or below"
            by.fail(BuildError(f"{name!r} leads out of the workflow's folder", hint=hint), path)
        return file
