"""The steps of the workflow that writes workflows, besides its calls of the model.

They take and return plain data, since a record holds what passes between nodes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from weft.agents.tools import tool
from weft.core.errors import BuildError, InputError
from weft.core.values import ToolSpec
from weft.workflow.author.draft import (
    Edge,
    defect_of,
    find_defects,
    raw_document,
    with_comments,
)
from weft.workflow.author.fields import visible_names, written_fields
from weft.workflow.author.intention import Intention, read_intention
from weft.workflow.author.layout import laid_out, skeleton_edges
from weft.workflow.author.repair import repair_prompt, repair_tasks, repaired_text
from weft.workflow.author.skeleton import SkeletonNode, WorkflowSkeleton, node_of, read_skeleton
from weft.workflow.document.writer import sections_text

Json = dict[str, Any]
_NO_ANSWER: Final[Json] = {}
"""What the workflow has in the place of an answer that does not fit its schema."""


@tool(pure=True)
def checked_intention(raw: Json) -> Json:
    """The intention as it was given or written, checked."""
    return read_intention(raw).plain()


@tool(pure=True)
def checked_skeleton(request: Json, intention: Json, answer: Json) -> Json:
    """The skeleton of an answer, or what is wrong with it."""
    names = [each["name"] for each in request["tools"]]
    skeleton, problems = read_skeleton(answer, read_intention(intention), names)
    return {"skeleton": None if skeleton is None else asdict(skeleton), "problems": problems}


@tool(pure=True)
def written_tasks(request: Json, intention: Json, bullets: Json, drawn: Json) -> list[Json]:
    """One task for each node of the skeleton: the key of its schema, and the prompt.

    Raises: `BuildError` for a skeleton that is still wrong.
    """
    skeleton = _skeleton(drawn)
    meant = read_intention(intention)
    tools = _tools(request)
    return [
        {
            "id": node.id,
            "key": f"tool {node.tool}" if node.kind == "tool" else node.kind,
            "prompt": _prompt(request, meant, bullets, skeleton, node, tools),
        }
        for node in skeleton.nodes
    ]


@tool(pure=True)
def first_draft(
    request: Json, intention: Json, drawn: Json, tasks: list[Json], answers: list[Json]
) -> Json:
    """The document that the answers make, with its defects.

    Raises: `BuildError` where no answer can be used.
    """
    skeleton = _skeleton(drawn)
    tools = _tools(request)
    fields = {}
    for task, answer in zip(tasks, answers, strict=True):
        node = skeleton.node(task["id"])
        written = written_fields(node.kind, answer, tools.get(node.tool))
        if written is not None:
            fields[node.id] = written
    if not fields:
        hint = "see why its calls failed: weft runs show"
        raise BuildError("the model gave no answer that can be used", hint=hint)
    raw = laid_out(request["base"], read_intention(intention), skeleton, fields)
    return _state(request, sections_text(raw), skeleton_edges(skeleton))


@tool(pure=True)
def given_draft(request: Json) -> Json:
    """The draft in the request, with its defects; `edges` of the request are those it must have."""
    return _state(request, request["text"], [tuple(each) for each in request.get("edges", ())])


@tool(pure=True)
def faulty_parts(request: Json, state: Json) -> list[Json]:
    """One task for each part of the draft that a defect names."""
    text, tools = state["text"], _tools(request)
    raw = raw_document(text)
    tasks = repair_tasks(text, [defect_of(each) for each in state["defects"]])
    return [
        {
            "key": task.key,
            "prompt": repair_prompt(
                task, request["query"], text, visible_names(raw, task.path), tools
            ),
        }
        for task in tasks
    ]


@tool(pure=True)
def repaired_draft(request: Json, state: Json, answers: list[Json]) -> Json:
    """The draft with the answers to its `faulty_parts`, checked again."""
    tasks = repair_tasks(state["text"], [defect_of(each) for each in state["defects"]])
    text, parts = repaired_text(state["text"], tasks, answers, list(_tools(request)))
    told = {task.part: str(task.defects[0]) for task in tasks}
    done = [{"part": part, "defect": told[part]} for part in parts]
    new = _state(request, text, [tuple(each) for each in state["edges"]])
    return new | {
        "rounds": state["rounds"] + bool(tasks),
        "repaired": [*state["repaired"], *done],
    }


@tool(effect="idempotent")
def saved_draft(request: Json, state: Json) -> Json:
    """Write the draft, with a comment at each part that still has a defect, to the asked file.

    Raises: `InputError` for a file that exists with another text, or cannot be written.
    """
    remaining = [defect_of(each) for each in state["defects"]]
    text = with_comments(state["text"], remaining) if remaining else state["text"]
    file = Path(request["file"])
    try:
        if file.exists():
            if file.read_text("utf-8") != text:
                raise InputError(f"{file} exists already", hint="name another file: --out")
        else:
            part = file.with_name(f".{file.name}.{os.getpid()}")
            part.write_text(text, encoding="utf-8")
            part.replace(file)
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}") from error
    return {"file": str(file), "remaining": [str(each) for each in remaining]}


def _state(request: Json, text: str, edges: Sequence[Edge]) -> Json:
    defects = find_defects(text, Path(request["file"]), edges)
    found = [each.plain() for each in defects]
    listed = [list(each) for each in edges]
    return {"text": text, "defects": found, "edges": listed, "rounds": 0, "repaired": []}


def _skeleton(drawn: Json) -> WorkflowSkeleton:
    """The skeleton in the last answer. Raises: `BuildError`."""
    raw = drawn["skeleton"]
    if raw is None:
        hint = "say more about the parts of the workflow, or ask another model"
        why = "; ".join(drawn["problems"][:5])
        raise BuildError(f"the model drew no skeleton that can be used: {why}", hint=hint)
    return WorkflowSkeleton(tuple(map(node_of, raw["nodes"])), raw["outputs"])


def _tools(request: Json) -> dict[str, ToolSpec]:
    return {each["name"]: ToolSpec(**each) for each in request["tools"]}


_ASKED: Final[Mapping[str, str]] = {
    "tool": "Write `with`: the arguments, each a value or an expression.",
    "model": "Write `prompt`: what the model is asked, with {{ expressions }} for values.",
    "map": "Write `map`: an expression whose value is the list.",
    "branch": "Write `branch`: an expression whose text is one of the cases.",
    "loop": "Write `start`: the first value, `until`: the expression that ends it, and `max`.",
    "ask": "Write `ask`: the question for a person, and `schema` where it has choices.",
    "value": "Write `value`: data in which texts may be {{ expressions }}.",
}


def _prompt(
    request: Json,
    intention: Intention,
    bullets: Json,
    skeleton: WorkflowSkeleton,
    node: SkeletonNode,
    tools: Mapping[str, ToolSpec],
) -> str:
    """What a model is told about one node."""
    inputs = [field.name for field in intention.input]
    what = f"tool {node.tool}" if node.tool else node.kind
    lines = [
        f"Write the node `{node.id}` ({what}) of a workflow for this request: {request['query']}",
        "",
        "Steps of the workflow:",
        *(f"{number}. {text}" for number, text in enumerate(bullets.get("bullets", ()), 1)),
        "",
        "Its nodes:",
        *(json.dumps(_short(each), ensure_ascii=False) for each in skeleton.nodes),
        "",
        f"It must use: {', '.join(node.needs) or 'no other node'}.",
        f"It can see: {', '.join([*inputs, *skeleton.visible(node)]) or 'nothing'}.",
    ]
    if node.kind == "tool" and node.tool in tools:
        lines.append(f"Arguments of {node.tool}: {json.dumps(tools[node.tool].parameters)}")
    if node.kind == "branch":
        lines.append(f"Cases: {', '.join(node.cases)}.")
    lines += ["Expressions are Jinja's, as {{ name }}, {{ name.key }} or {{ name | length > 3 }}."]
    return "\n".join([*lines, _ASKED[node.kind]])


def _short(node: SkeletonNode) -> Json:
    return {key: value for key, value in asdict(node).items() if value not in ("", ())}
