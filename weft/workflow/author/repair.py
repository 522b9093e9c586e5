"""Repairs of a draft: which parts a model is asked for, and its answers in the text.

Only parts that a defect names are asked for, and only their own fields change. Every other byte of
the text stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.core.errors import BuildError
from weft.core.values import ToolSpec
from weft.workflow.author.draft import DraftDefect, raw_document
from weft.workflow.author.fields import (
    OUTPUTS,
    at,
    field_changes,
    kind_of,
    own_fields,
    repaired_fields,
)
from weft.workflow.document.source import KeyPath
from weft.workflow.document.splice import spliced


@dataclass(frozen=True, slots=True)
class RepairTask:
    """One faulty part for a model. `fields`: what it has now; `key`: the schema of the answer."""

    part: str
    path: KeyPath
    kind: str
    fields: Mapping[str, Any]
    defects: tuple[DraftDefect, ...]

    @property
    def key(self) -> str:
        """The case of the schema under which it is answered."""
        return f"repair {self.kind or 'other'}"


def repair_tasks(text: str, defects: Sequence[DraftDefect]) -> list[RepairTask]:
    """One task for each part that the defects name, in the order of their positions."""
    raw = raw_document(text)
    parts: dict[str, list[DraftDefect]] = {}
    for defect in defects:
        if defect.part and defect.path:
            parts.setdefault(defect.part, []).append(defect)
    return [task for each in parts.values() if (task := _task(raw, each)) is not None]


def _task(raw: Any, defects: Sequence[DraftDefect]) -> RepairTask | None:
    first = defects[0]
    part = at(raw, first.path)
    if not isinstance(part, dict):
        return None
    if first.part == OUTPUTS:
        wrong = {each.key for each in defects}
        fields = {key: value for key, value in part.items() if key in wrong}
        return RepairTask(OUTPUTS, first.path, OUTPUTS, fields, tuple(defects))
    return RepairTask(first.part, first.path, kind_of(part), own_fields(part), tuple(defects))


def repair_prompt(
    task: RepairTask, request: str, text: str, visible: Sequence[str], tools: Mapping[str, ToolSpec]
) -> str:
    """What the model is told: the part, its defects with remedies, and what it may use."""
    lines = [
        f"Repair the part `{task.part}` of a workflow for this request: {request}",
        "",
        "The part is now:",
        json.dumps(dict(task.fields), ensure_ascii=False),
        "",
        "What is wrong with it, and what to do:",
        *(f"- {each.message}" + (f"; {each.hint}" if each.hint else "") for each in task.defects),
        "",
        f"Names it may use in {{{{ expressions }}}}: {', '.join(visible) or 'none'}.",
    ]
    tool = tools.get(str(task.fields.get("tool", "")))
    if tool is not None:
        lines.append(f"Arguments of {tool.name}: {json.dumps(tool.parameters)}")
    elif task.kind == "tool":
        lines.append(f"Tools: {', '.join(tools)}.")
    lines += ["", "The whole workflow:", text, "", "Answer with the fields that change, as JSON."]
    return "\n".join(lines)


def repaired_text(
    text: str, tasks: Sequence[RepairTask], answers: Sequence[object], tools: Sequence[str]
) -> tuple[str, list[str]]:
    """`text` with the answers that are accepted, and the parts that they changed.

    An answer that does not fit its schema, or whose values no text can hold, changes nothing.
    """
    raw = raw_document(text)
    changes = {
        task.part: dict(_changes(raw, task, answer, tools))
        for task, answer in zip(tasks, answers, strict=True)
    }
    changes = {part: each for part, each in changes.items() if each}
    try:
        together = {path: value for each in changes.values() for path, value in each.items()}
        return (spliced(text, together) if together else text), list(changes)
    except BuildError:
        return _one_by_one(text, changes)


def _one_by_one(text: str, changes: Mapping[str, Mapping[KeyPath, Any]]) -> tuple[str, list[str]]:
    """`text` with the changes of the parts for which it can hold them."""
    repaired: list[str] = []
    for part, each in changes.items():
        try:
            text = spliced(text, each)
        except BuildError:
            continue
        repaired.append(part)
    return text, repaired


def _changes(
    raw: Any, task: RepairTask, answer: object, tools: Sequence[str]
) -> Iterator[tuple[KeyPath, Any]]:
    wrong = [defect.key for defect in task.defects]
    fields = repaired_fields(task.fields, answer, task.kind, tools, wrong)
    if fields is None:
        return
    if task.part == OUTPUTS:
        for key, value in fields.items():
            if value != task.fields.get(key):
                yield (*task.path, key), value
        return
    yield from field_changes(task.path, at(raw, task.path), fields).items()
