"""`write`: a workflow file from words, written by a model in layers, as a workflow itself.

intention -> bullets -> skeleton -> fields of all nodes at once -> document -> repairs. The layers
are in `weft.workflow.author`; what the model may write is a JSON Schema at each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weft.agents.tools import resolve
from weft.core.errors import AgentError, BuildError, InputError, SourceError, ToolNotFound
from weft.core.ids import is_name
from weft.core.keywords import refuses_unknown_keywords
from weft.core.values import ToolSpec
from weft.workflow.apps.question import Declared, QuestionFlow
from weft.workflow.apps.tool_sources import ToolLike, ToolSources
from weft.workflow.author.draft import raw_document
from weft.workflow.author.program import WriteOptions, author_flow, draft_repair_flow
from weft.workflow.runtime.models.factory import DEFAULT_MODEL, Models
from weft.workflow.runtime.options import AskSettings
from weft.workflow.runtime.results.result import FlowResult


@dataclass(frozen=True, slots=True)
class RepairedPart:
    """A part of the draft that was written anew, and the first defect that it had."""

    part: str
    defect: str


@dataclass(frozen=True, slots=True)
class WrittenWorkflow:
    """What was written. `remaining`: defects that are marked in the file; none: it can run."""

    file: Path
    text: str
    repaired: tuple[RepairedPart, ...] = ()
    remaining: tuple[str, ...] = ()
    rounds: int = 0
    run: str = ""
    bullets: tuple[str, ...] = field(default=())

    def check(self) -> None:
        """Raises: `SourceError`, which lists the defects that remain."""
        if not self.remaining:
            return
        listed = "\n  ".join(self.remaining)
        lines = self.text.split("\n")
        number = next((n for n, line in enumerate(lines, 1) if "# weft write:" in line), 1)
        raise SourceError(
            f"the workflow still has defects after {self.rounds} rounds of repairs:\n  {listed}",
            file=str(self.file),
            line=number,
            hint=f"repair the parts marked in the file, then: weft check {self.file.name}",
        )


@refuses_unknown_keywords
async def write(
    query: str,
    *,
    out: str | Path,
    tools: Iterable[ToolLike] = (),
    model: Declared = DEFAULT_MODEL,
    options: WriteOptions | None = None,
    settings: AskSettings | None = None,
) -> WrittenWorkflow:
    """Let a model write a workflow for `query` with `tools` into the file `out`.

        written = await write("Summarise each hit", tools=["./tools.py"], out="flow.yaml")
        written.text, written.repaired, written.remaining

    Args:
        query: what the workflow is to do
        out: the new file; its tools lie in its folder or below
        tools: as of `weft.ask`
        model: the author, which model nodes of the workflow use too. A client cannot be named in a
            file: they then use the default model
        options: the intention, and settings of the model's calls
        settings: as of `weft.ask`

    Raises: `BuildError` for invalid arguments, `InputError` for a file that exists, `AgentError`
    where no draft came about, `StoreError` when it cannot be recorded.
    """
    question = write_flow(query, ToolSources(tools), model, Path(out), options)
    async with Models() as models:
        run = question.start(models, settings)
        result = await run.wait()
        return written_by(result, run.id)


def write_flow(
    query: str,
    sources: ToolSources,
    model: Declared,
    out: Path,
    options: WriteOptions | None = None,
) -> QuestionFlow:
    """The workflow that writes one, with its inputs.

    Raises: `BuildError` for an empty query, a tool that a file at `out` cannot name, or a bad name;
    `InputError` for a file that exists.
    """
    options = options or WriteOptions()
    if not query.strip():
        raise BuildError("the query is empty", hint='weft write "summarise each hit"')
    file = out.resolve()
    if file.exists():
        raise InputError(f"{out} exists already", hint="name another file: --out")
    if not file.parent.is_dir():
        raise InputError(f"there is no folder {file.parent}", hint="make it first")
    specs, declared = _declared(sources, file.parent)
    base = {"name": options.name or _name(file), "description": "", "tools": declared}
    base["model"] = model if isinstance(model, str | Mapping) else DEFAULT_MODEL
    request = {
        "query": query,
        "file": str(file),
        "base": base,
        "tools": [
            {"name": each.name, "description": each.description, "parameters": each.parameters}
            for each in specs
        ],
    }
    inputs: dict[str, Any] = {"request": request}
    if options.intention is not None:
        inputs["meant"] = options.intention.plain()
    return QuestionFlow(author_flow(specs, model, file.parent, options), inputs, specs)


def repair_flow(
    text: str,
    file: Path,
    model: Declared,
    *,
    query: str = "",
    edges: Iterable[tuple[str, str]] = (),
    options: WriteOptions | None = None,
) -> QuestionFlow:
    """The workflow that repairs a workflow's `text`, which is to be `file`; writes no file.

    Its output `draft` has the text, and what `weft check` still finds in it. `edges`: names, each
    with the address of a node that must use it. Raises: `SourceError` for a text that is not YAML.
    """
    specs = _specs_in(text, file)
    tools = [
        {"name": each.name, "description": each.description, "parameters": each.parameters}
        for each in specs
    ]
    names = [each.name for each in specs]
    flow = draft_repair_flow(names, model, file.resolve().parent, options or WriteOptions())
    inputs = {"query": query, "file": str(file), "text": text, "tools": tools}
    return QuestionFlow(flow, {"request": {**inputs, "edges": [list(each) for each in edges]}})


def _specs_in(text: str, file: Path) -> list[ToolSpec]:
    """The tools that a document declares, as far as they can be imported."""
    declared = raw_document(text).get("tools") or {}
    specs = []
    for name, use in declared.items():
        reference = use.get("use") if isinstance(use, dict) else use
        try:
            spec = resolve(str(reference), file.resolve().parent).spec
        except (BuildError, ToolNotFound):
            continue  # the check says so
        specs.append(replace(spec, name=name))
    return specs


def written_by(result: FlowResult, run: str = "") -> WrittenWorkflow:
    """What a finished run wrote. Raises: `AgentError` when there is no draft."""
    outputs = result.outputs
    if "saved" not in outputs or "draft" not in outputs:
        error = next(iter(result.errors.values()), None)
        why = "; ".join(result.reasons) or (str(error) if error else "it did not end")
        again = isinstance(error, BuildError) or not run
        hint = error.hint if again and error is not None else f"weft resume {run}"
        raise AgentError(f"no workflow was written: {why}", hint=hint) from error
    draft, saved = outputs["draft"], outputs["saved"]
    return WrittenWorkflow(
        file=Path(saved["file"]),
        text=Path(saved["file"]).read_text("utf-8"),
        repaired=tuple(RepairedPart(each["part"], each["defect"]) for each in draft["repaired"]),
        remaining=tuple(saved["remaining"]),
        rounds=draft["rounds"],
        run=run,
        bullets=tuple(outputs["bullets"]["bullets"]),
    )


def _declared(
    sources: ToolSources, folder: Path
) -> tuple[list[ToolSpec], dict[str, str | Mapping[str, Any]]]:
    """The tools under the names that nodes of a file in `folder` use, and their declarations."""
    section = sources.section(folder / "flow.yaml")
    specs = sources.runner.specs() if section is None else section.specs
    declared = sources.declarations(folder, [spec.name for spec in specs])
    named = [replace(spec, name=declared.called.get(spec.name, spec.name)) for spec in specs]
    return named, dict(declared.tools)


def _name(file: Path) -> str:
    name = file.name.partition(".")[0]
    return name if is_name(name) else "workflow"
