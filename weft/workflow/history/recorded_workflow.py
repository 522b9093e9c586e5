"""The workflow of a recorded run, from its file or from the record; its result and its notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from weft.agents.tools.module import is_file
from weft.core.codec import decode, encode
from weft.core.errors import BuildError, SourceError, StoreError, ToolNotFound
from weft.core.events import RunStatus
from weft.core.ports import ToolRunner
from weft.core.ports.journal import RunHeader
from weft.core.values import ToolSpec
from weft.engine import RunResult
from weft.workflow.compile.sources import texts_in
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.loader import load_texts, load_unit
from weft.workflow.document.secrets import recorded_sources
from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.nodes import CallNode, ModelNode, ReduceNode
from weft.workflow.document.unit import ONLY_PYTHON, Unit
from weft.workflow.history.run_history import RunHistory
from weft.workflow.runtime.models.strategies import functions_in
from weft.workflow.runtime.results.result import ANSWER, FlowResult, flow_result, output_templates

_QUESTION: Final = "question"
_FOLDER: Final = "folder"
_SPECS: Final = "tools"


def question_notes(folder: Path, specs: Iterable[ToolSpec] = ()) -> dict[str, Any]:
    """What a record says: the folder in which paths start, and its tools as models see them."""
    return {_QUESTION: True, _FOLDER: str(folder), _SPECS: [encode(spec) for spec in specs]}


def notes_of(header: RunHeader) -> dict[str, Any]:
    """What the record of a question says beside; nothing where it is of another workflow."""
    if not is_question(header):
        return {}
    return {k: header.settings[k] for k in (_QUESTION, _FOLDER, _SPECS) if k in header.settings}


def is_question(header: RunHeader) -> bool:
    """Whether the run is a question, whose workflow is nowhere but in its record."""
    return header.settings.get(_QUESTION) is True


def strategy_of(header: RunHeader, unit: Unit) -> str | None:
    """The strategy that a question is thought about by; None for what is no such question."""
    step = unit.document.nodes.get(ANSWER) if is_question(header) else None
    thinks = step.think if isinstance(step, ModelNode) else None
    return None if thinks is None else thinks.strategy


def question_folder(header: RunHeader) -> Path | None:
    """The folder in which its paths start; None where it was asked on another machine."""
    folder = header.settings.get(_FOLDER)
    return Path(folder) if isinstance(folder, str) else None


def recorded_tools(header: RunHeader, unit: Unit) -> ToolRunner | None:
    """The tools as the record has them, for a question that is repeated without their code.

    None where their code is there: what has changed in it is found then.
    """
    uses = [tool.use for tool in unit.document.tools.values() if tool.use is not None]
    if not is_question(header) or (
        question_folder(header) and all(_is_here(unit, use) for use in uses)
    ):
        return None
    return _RecordedTools(header.settings.get(_SPECS))


class _RecordedTools:
    """Implements `ToolRunner`: tools of which no more is known than what models were told."""

    def __init__(self, told: object) -> None:
        found = map(_spec, told if isinstance(told, list) else ())
        self._specs = tuple(spec for spec in found if spec is not None)

    def specs(self) -> tuple[ToolSpec, ...]:
        return self._specs

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ARG002 - the port
        raise ToolNotFound(f"the record has no code of {name}", hint="it can only be replayed")


def _spec(text: object) -> ToolSpec | None:
    try:
        found = decode(text) if isinstance(text, str) else None
    except StoreError:
        return None
    return found if isinstance(found, ToolSpec) else None


def _is_here(unit: Unit, use: str) -> bool:
    source = use.rpartition(":")[0]
    if use.startswith(ONLY_PYTHON):
        return use in unit.functions
    return not is_file(source) or (unit.folder / source).is_file()


def result_of(story: RunHistory) -> FlowResult:
    """The run as `FlowRun.wait` gave it, or would have: an unfinished one counts as cancelled."""
    ended, trace = story.ended, story.trace
    status: RunStatus = "cancelled" if ended is None else ended.status
    result = RunResult(
        story.run,
        status,
        story.outcomes,
        trace.usage if ended is None else ended.usage,
        trace.wall_s,
        () if ended is None else ended.reasons,
        () if ended is None else ended.leaked,
    )
    document = recorded_document(story)
    if document is not None:
        return flow_result(output_templates(document), story.header.inputs, result)
    values: dict[str, Any] = {
        node: outcome.value for node, outcome in story.outcomes.items() if "/" not in node
    }
    return FlowResult.of(result, values, {})


def recorded_document(story: RunHistory) -> WorkflowDocument | None:
    """The workflow itself; None where its record cannot be read without the program around it."""
    try:
        return load_texts(texts_in(recorded_sources(story.header)), Path.cwd()).document
    except (SourceError, StopIteration):
        return None


def rebuild_unit(header: RunHeader, file: Path | None = None) -> Unit:
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


def rebuild_or_read_unit(header: RunHeader, file: Path | None = None) -> Unit:
    """As `rebuild_unit`; where there is no such file, the workflow as it was recorded.

    That calls no function of a file: a record names none that is run, unless it is that of a
    question which was asked on this machine. Raises: `SourceError`, `BuildError`.
    """
    if file is None and is_question(header) and (folder := question_folder(header)) is not None:
        return load_texts(texts_in(recorded_sources(header)), folder)
    place = source_file(header)
    if file is not None or (place is not None and place.is_file()):
        return rebuild_unit(header, file)
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
    folder = question_folder(header)
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
