"""The workflow of a recorded run: read again from where it was, or as the record has it."""

from __future__ import annotations

from pathlib import Path

from weft.core.errors import BuildError, SourceError
from weft.core.ports.journal import RunHeader
from weft.workflow.document.leaves import CallNode, ModelNode, ReduceNode
from weft.workflow.document.walk import walk
from weft.workflow.loader import load_texts, load_unit
from weft.workflow.runs.questions import asked_in, is_question
from weft.workflow.runs.sources import texts_in
from weft.workflow.secrets import recorded_sources
from weft.workflow.strategy_settings import functions_in
from weft.workflow.unit import ONLY_PYTHON, Unit


def rebuilt(header: RunHeader, file: Path | None = None) -> Unit:
    """The workflow as it is now: in `file`, else where the run was started from.

    A question is read from its record, for it has no file. Raises: `SourceError`; `BuildError` when
    there is no such file, or the workflow uses what only a program in Python has.
    """
    if file is not None:
        return load_unit(file)
    if is_question(header):
        return _question(header)
    place = source_file(header)
    if place is None:
        hint = "in Python: `flow.resume(run)`; or name its file with --file"
        raise BuildError(f"the workflow of {header.run} was not read from a file", hint=hint)
    if not place.is_file():
        hint = "name the file where it is now with --file"
        raise BuildError(f"the workflow of {header.run} is not at {place} any more", hint=hint)
    return load_unit(place)


def rebuilt_or_recorded(header: RunHeader, file: Path | None = None) -> Unit:
    """As `rebuilt`; where there is no such file, the workflow as it was recorded.

    That calls no function of a file: a record names none that is run, unless it is that of a
    question which was asked on this machine. Raises: `SourceError`, `BuildError`.
    """
    if file is None and is_question(header) and (folder := asked_in(header)) is not None:
        return load_texts(texts_in(recorded_sources(header)), folder)
    place = source_file(header)
    if file is not None or (place is not None and place.is_file()):
        return rebuilt(header, file)
    try:
        unit = load_texts(texts_in(recorded_sources(header)), place.parent if place else Path.cwd())
    except (SourceError, StopIteration) as error:
        hint = "say where its workflow is: --file, or a `Flow` in Python"
        said = f"the workflow of {header.run} cannot be read from its record"
        raise BuildError(said, hint=hint) from error
    for function in _functions(unit, tools=not is_question(header)):
        hint = "say where its workflow is: --file FILE; for a `Flow` in Python use `weft_replay`"
        raise BuildError(f"the workflow of {header.run} calls {function}", hint=hint)
    return unit


def source_file(header: RunHeader) -> Path | None:
    """Where the workflow's file was when the run began; None where it was read from none."""
    folder = header.settings.get("folder")
    if not isinstance(folder, str) or not header.document:
        return None
    return Path(folder) / next(iter(header.document))


def _question(header: RunHeader) -> Unit:
    """The workflow of a question, to run it. Raises: `SourceError`, `BuildError`."""
    folder = asked_in(header)
    if folder is None:
        hint = "ask it again; it can be replayed here"
        raise BuildError(f"{header.run} was asked on another machine", hint=hint)
    unit = load_texts(texts_in(recorded_sources(header)), folder)
    models = (model.use for model in unit.document.models.values())
    for name in (*_functions(unit, tools=True, python=True), *models):
        if name.startswith(ONLY_PYTHON):
            hint = "go on with it there: settings=AskSettings(resume=...)"
            what = name.removeprefix(ONLY_PYTHON)
            said = f"{header.run} was asked in Python, and takes `{what}` from there"
            raise BuildError(said, hint=hint)
    return unit


def _functions(unit: Unit, *, tools: bool, python: bool = False) -> list[str]:
    """What a run of the workflow takes from files and modules: its `tools` too, or not.

    `python`: also what exists in a program only.
    """
    found: list[str] = []
    for included in unit.everything():
        for _, step in walk(included.document.nodes):
            if isinstance(step, CallNode):
                found.append(step.call)
            elif isinstance(step, ReduceNode):
                found.append(step.reduce)
            elif isinstance(step, ModelNode) and step.think is not None:
                found += functions_in(step.think.strategy, step.think.settings)
        for tool in included.document.tools.values() if tools else ():
            found += [tool.use] if tool.use is not None else []
    return [name for name in found if python or not name.startswith(ONLY_PYTHON)]
