"""The workflow that writes workflows: model calls under JSON Schemas, and the steps between them.

intention -> bullets -> skeleton -> fields of all nodes at once -> draft -> repairs -> file
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weft.core.ports import ModelClient
from weft.core.values import ToolSpec
from weft.workflow.author.fields import OUTPUTS, fields_schema, repaired_schema
from weft.workflow.author.intention import Intention, intention_schema
from weft.workflow.author.prompts import (
    BULLETS,
    BULLETS_PROMPT,
    INTENTION_PROMPT,
    SKELETON_PROMPT,
)
from weft.workflow.author.skeleton import KINDS, skeleton_schema
from weft.workflow.document.spec.nodes import KIND_NAMES
from weft.workflow.flow import Flow
from weft.workflow.flow.handle import source_of

AUTHOR: Final = "author"
"""The name of the model that writes, in its workflow."""
ROUNDS: Final = 3
"""How often errors go back to the model."""
_DRAWINGS: Final = 3
_STEPS: Final = "weft.workflow.author.steps"
Declared = ModelClient | str | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Settings of the author. `max_tokens`: of each call of the model.

    `intention`: the form to start from; None: the model writes it. `name`: of the workflow; None:
    that of the file. `seed` and `temperature`: of each call.
    """

    intention: Intention | None = None
    name: str | None = None
    max_tokens: int = 2048
    temperature: float = 0.0
    seed: int | None = None


def author_flow(
    specs: list[ToolSpec], model: Declared, folder: Path, options: WriteOptions
) -> Flow:
    """The workflow that writes one. Its inputs: `request`, and `meant` where options have it."""
    flow = Flow("write", models={AUTHOR: model}, folder=folder)
    request = flow.input("request", dict)
    names = [spec.name for spec in specs]
    said = _said(options)

    def said_by_model(prompt: str, schema: Mapping[str, Any], name: str) -> Any:
        return flow.model(AUTHOR, prompt, schema=dict(schema), name=name, **said)

    if options.intention is None:
        meant = said_by_model(INTENTION_PROMPT, intention_schema(), "meant")
    else:
        meant = flow.input("meant", dict)
    intention = flow.call(f"{_STEPS}:checked_intention", args={"raw": meant}, name="intention")
    bullets = said_by_model(BULLETS_PROMPT, BULLETS, "bullets")

    def draw(drawn: Any) -> Any:
        answer = said_by_model(
            SKELETON_PROMPT.replace("drawn.", f"{source_of(drawn)}."),
            skeleton_schema(names),
            "drawing",
        )
        return _step(flow, "checked_skeleton", request=request, intention=intention, answer=answer)

    nothing: Any = {"skeleton": None, "problems": []}
    drawn = flow.loop(
        nothing,
        draw,
        until=lambda drawn: f"{{{{ {source_of(drawn)}.problems | length == 0 }}}}",
        max=_DRAWINGS,
        name="skeleton",
    )
    tasks = _step(
        flow, "written_tasks", request=request, intention=intention, bullets=bullets, drawn=drawn
    )
    answers = flow.map(
        tasks, lambda task: _answer(flow, task, _written(specs), said), name="fields"
    )
    draft = _step(
        flow,
        "first_draft",
        request=request, intention=intention, drawn=drawn, tasks=tasks, answers=answers,
    )  # fmt: skip

    repaired = _repairs(flow, request, draft, names, said)
    saved = _step(flow, "saved_draft", request=request, state=repaired)
    flow.output(saved=saved, draft=repaired, bullets=bullets)
    return flow


def draft_repair_flow(
    tools: list[str], model: Declared, folder: Path, options: WriteOptions
) -> Flow:
    """The workflow that repairs the text in its input `request`."""
    flow = Flow("repair", models={AUTHOR: model}, folder=folder)
    request = flow.input("request", dict)
    draft = _step(flow, "given_draft", request=request)
    flow.output(draft=_repairs(flow, request, draft, tools, _said(options)))
    return flow


def _repairs(
    flow: Flow, request: Any, draft: Any, tools: list[str], said: Mapping[str, Any]
) -> Any:
    """The draft after the repairs of the parts that its defects name."""

    def repair(state: Any) -> Any:
        parts = _step(flow, "faulty_parts", request=request, state=state)
        answers = flow.map(
            parts, lambda part: _answer(flow, part, _repaired(tools), said), name="answers"
        )
        return _step(flow, "repaired_draft", request=request, state=state, answers=answers)

    return flow.loop(
        draft,
        repair,
        until=lambda state: f"{{{{ {source_of(state)}.defects | length == 0 }}}}",
        max=ROUNDS,
        name="repairs",
    )


def _step(flow: Flow, name: str, **args: object) -> Any:
    return flow.call(f"{_STEPS}:{name}", args=args, name=name)


def _answer(flow: Flow, task: Any, schemas: Mapping[str, Any], said: Mapping[str, Any]) -> Any:
    """The answer to a task, under the schema of its key; an empty one where none fits."""

    def case(schema: Any) -> Callable[[], Any]:
        return lambda: flow.model(
            AUTHOR, task.prompt, schema=schema, default={}, name="answer", **said
        )

    return flow.branch(task.key, {key: case(each) for key, each in schemas.items()}, name="asked")


def _written(specs: Iterable[ToolSpec]) -> dict[str, Any]:
    """The schemas of the fields of nodes, by the key of a task."""
    tools = {f"tool {spec.name}": fields_schema("tool", spec) for spec in specs}
    return {**tools, **{kind: fields_schema(kind) for kind in KINDS if kind != "tool"}}


def _repaired(tools: list[str]) -> dict[str, Any]:
    """The schemas of repaired fields, by the key of a task."""
    kinds = {f"repair {kind}": repaired_schema(kind, tools) for kind in (*KIND_NAMES, "other")}
    return {**kinds, f"repair {OUTPUTS}": {"type": "object", "maxProperties": 12}}


def _said(options: WriteOptions) -> dict[str, Any]:
    said: dict[str, Any] = {"max_tokens": options.max_tokens, "temperature": options.temperature}
    return said if options.seed is None else {**said, "seed": options.seed}
