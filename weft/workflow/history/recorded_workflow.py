"""The workflow of a recorded run, from its file or from the record; its result and its settings."""

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
    """Settings in the record of a question: its folder, and its tools as models see them."""
    return {_QUESTION: True, _FOLDER: str(folder), _SPECS: [encode(spec) for spec in specs]}


def notes_of(header: RunHeader) -> dict[str, Any]:
    """The `question_notes` in a record; empty for another workflow."""
    if not is_question(header):
        return {}
    return {k: header.settings[k] for k in (_QUESTION, _FOLDER, _SPECS) if k in header.settings}


def is_question(header: RunHeader) -> bool:
    """Whether the run is a question, whose workflow exists only in its record."""
    return header.settings.get(_QUESTION) is True


def strategy_of(header: RunHeader, unit: Unit) -> str | None:
    """The strategy of a question; None for other runs."""
    step = unit.document.nodes.get(ANSWER) if is_question(header) else None
    thinks = step.think if isinstance(step, ModelNode) else None
    return None if thinks is None else thinks.strategy


def question_folder(header: RunHeader) -> Path | None:
    """The folder of a question's paths; None if it was asked on another machine."""
    folder = header.settings.get(_FOLDER)
    return Path(folder) if isinstance(folder, str) else None


def recorded_tools(header: RunHeader, unit: Unit) -> ToolRunner | None:
    """The recorded specs of a question's tools, for a replay without their code.

    None where the code is there, so that changes in it are found.
    """
    uses = [tool.use for tool in unit.document.tools.values() if tool.use is not None]
    if not is_question(header) or (
        question_folder(header) and all(_is_here(unit, use) for use in uses)
    ):
        return None
    return _RecordedTools(header.settings.get(_SPECS))


class _RecordedTools:
    """Implements `ToolRunner`: tools with their recorded specs, which cannot be called."""

    def __init__(self, recorded: object) -> None:
        specs = map(_spec, recorded if isinstance(recorded, list) else ())
        self._specs = tuple(spec for spec in specs if spec is not None)

    def specs(self) -> tuple[ToolSpec, ...]:
        return self._specs

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ARG002 - the port
        raise ToolNotFound(f"the record has no code of {name}", hint="it can only be replayed")


def _spec(text: object) -> ToolSpec | None:
    try:
        spec = decode(text) if isinstance(text, str) else None
    except StoreError:
        return None
    return spec if isinstance(spec, ToolSpec) else None


def _is_here(unit: Unit, use: str) -> bool:
    source = use.rpartition(":")[0]
    if use.startswith(ONLY_PYTHON):
        return use in unit.functions
    return not is_file(source) or (unit.folder / source).is_file()


def result_of(history: RunHistory) -> FlowResult:
    """The result of `FlowRun.wait`, from the record; an unfinished run counts as cancelled."""
    ended, trace = history.ended, history.trace
    status: RunStatus = "cancelled" if ended is None else ended.status
    usage = trace.usage if ended is None else ended.usage
    why = ((), ()) if ended is None else (ended.reasons, ended.leaked)
    result = RunResult(history.run, status, history.outcomes, usage, trace.wall_s, *why)
    document = recorded_document(history)
    if document is not None:
        return flow_result(document, output_templates(document), history.header.inputs, result)
    values: dict[str, Any] = {
        node: outcome.value for node, outcome in history.outcomes.items() if "/" not in node
    }
    return FlowResult.of(result, values, {})


def recorded_document(history: RunHistory) -> WorkflowDocument | None:
    """The workflow; None where its record cannot be read without the program around it."""
    try:
        return recorded_unit(history.header, Path.cwd()).document
    except SourceError:
        return None


def recorded_unit(header: RunHeader, folder: Path) -> Unit:
    """The workflow as recorded, as if it were in `folder`. Raises: `SourceError`."""
    return load_texts(texts_in(recorded_sources(header)), folder)


def rebuild_unit(header: RunHeader, file: Path | None = None) -> Unit:
    """The current workflow: in `file`, else in the file that the run was started from.

    A question is read from its record. Raises: `SourceError`; `BuildError` when there is no such
    file, or the workflow uses objects of a Python program.
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
    """As `rebuild_unit`; without such a file, the workflow as recorded.

    A recorded workflow with functions of files is refused, except for a question that was asked on
    this machine. Raises: `SourceError`, `BuildError`.
    """
    if file is None and is_question(header) and (folder := question_folder(header)) is not None:
        return recorded_unit(header, folder)
    place = source_file(header)
    if file is not None or (place is not None and place.is_file()):
        return rebuild_unit(header, file)
    try:
        unit = recorded_unit(header, place.parent if place else Path.cwd())
    except SourceError as error:
        hint = "say where its workflow is: --file, or a `Flow` in Python"
        message = f"the workflow of {header.run} cannot be read from its record"
        raise BuildError(message, hint=hint) from error
    for function in _functions(unit, tools=not is_question(header)):
        hint = "say where its workflow is: --file FILE; for a `Flow` in Python use `weft_replay`"
        raise BuildError(f"the workflow of {header.run} calls {function}", hint=hint)
    return unit


def source_file(header: RunHeader) -> Path | None:
    """The path of the workflow's file when the run began; None if there was none."""
    folder = header.settings.get("folder")
    if not isinstance(folder, str) or not header.document:
        return None
    return Path(folder) / next(iter(header.document))


def way_on(header: RunHeader, reference: str) -> str:
    """How to resume a run: the command, where `reference` names the run; or what to do in Python.

    What was built in a Python program can only go on there.
    """
    if is_question(header):
        try:
            rebuild_unit(header)
        except SourceError:
            pass  # the command says what is wrong
        except BuildError as error:
            return str(error)
    elif source_file(header) is None:
        return f"in Python: flow.resume({header.run!r})"
    return f"weft resume {reference}"


def _question(header: RunHeader) -> Unit:
    """The workflow of a question, ready to run. Raises: `SourceError`, `BuildError`."""
    folder = question_folder(header)
    if folder is None:
        hint = "ask it again; it can be replayed here"
        raise BuildError(f"{header.run} was asked on another machine", hint=hint)
    unit = recorded_unit(header, folder)
    models = (model.use for model in unit.document.models.values())
    for name in (*_functions(unit, tools=True, python=True), *models):
        if name.startswith(ONLY_PYTHON):
            hint = (
                "go on with it there: settings=AskSettings(resume=RUN), with answers={...} or "
                "confirmed={NODE: weft.Confirmation(...)}"
            )
            what = name.removeprefix(ONLY_PYTHON)
            message = f"{header.run} was asked in Python, and takes `{what}` from there"
            raise BuildError(message, hint=hint)
    return unit


def _functions(unit: Unit, *, tools: bool, python: bool = False) -> list[str]:
    """The functions of files and modules in the workflow, those of `tools` optionally.

    `python`: also those that exist only in a Python program.
    """
    functions: list[str] = []
    for included in unit.everything():
        for _, step in walk(included.document.nodes):
            if isinstance(step, CallNode):
                functions.append(step.call)
            elif isinstance(step, ReduceNode):
                functions.append(step.reduce)
            elif isinstance(step, ModelNode) and step.think is not None:
                functions += functions_in(step.think.strategy, step.think.settings)
        for tool in included.document.tools.values() if tools else ():
            functions += [tool.use] if tool.use is not None else []
    return [name for name in functions if python or not name.startswith(ONLY_PYTHON)]
