"""The two questions about a playbook, and how their answers are read: a reflector's lessons and
tags, and a curator's operations (ACE: Zhang et al., arXiv 2510.04618). Answers are hostile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from weft.optimisation.propose.context import ObservedRun
from weft.optimisation.propose.playbook import (
    LONGEST_BULLET,
    Playbook,
    PlaybookOperation,
    read_operations,
)
from weft.optimisation.propose.traces import fenced, minimal_subgraph, run_text

_MOST_LESSONS: Final = 8
_MOST_OPERATIONS: Final = 16
_MOST_TEXT: Final = 8_000
_TEXT: Final = {"type": "string"}


def _object(**properties: Any) -> dict[str, Any]:
    """The schema of an object with all of these."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _array(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


REFLECTION: Final[Mapping[str, Any]] = _object(
    reasoning=_TEXT,
    lessons=_array(_TEXT),
    tags=_array(_object(id=_TEXT, tag={"enum": ["helpful", "harmful", "neutral"]})),
)
"""The schema of a reflector's answer."""
CURATION: Final[Mapping[str, Any]] = _object(
    reasoning=_TEXT,
    operations=_array(
        _object(kind={"enum": ["ADD", "UPDATE", "REMOVE"]}, id=_TEXT, text=_TEXT),
    ),
)
"""The schema of a curator's answer."""
_REFLECT: Final = """\
One step of a program is a model call. Learn from runs of the program on some cases.

Answer with JSON: "reasoning" says what went wrong in that step and what went well; "lessons" are
rules for the step that hold for other cases, too, one sentence each; "tags" says of each lesson
that the step has already, by its id, whether it was helpful, harmful or neutral in these runs."""
_CURATE: Final = f"""\
Keep a list of lessons for one step of a program. Bring new lessons into it by operations; you
cannot rewrite it as a whole.

Answer with JSON: "reasoning", and "operations", a list of
{{"kind": "ADD", "id": "", "text": NEW LESSON}} for what no lesson says yet,
{{"kind": "UPDATE", "id": ID, "text": BETTER TEXT}} and {{"kind": "REMOVE", "id": ID, "text": ""}}.
A lesson is one line of at most {LONGEST_BULLET} characters, without placeholders."""


def reflection_question(node: str, prompt: str, book: Playbook, runs: Sequence[ObservedRun]) -> str:
    """Asks what runs teach for one node, and how the lessons that it has did in them."""
    texts = [run_text(run, minimal_subgraph(run.nodes, [node])) for run in runs]
    parts = [
        _REFLECT,
        *_step(node, prompt, book),
        *(f"Run {at}.\n{text}" for at, text in enumerate(texts, 1)),
    ]
    return "\n\n".join(parts)


def curation_question(node: str, prompt: str, book: Playbook, lessons: Sequence[str]) -> str:
    """Asks how lessons should come into the playbook of a node."""
    new = f"New lessons:\n{fenced(list(lessons), _MOST_TEXT)}"
    return "\n\n".join([_CURATE, *_step(node, prompt, book), new])


def read_lessons(answer: object) -> list[str]:
    """The lessons in a reflector's answer, those too long cut; none where it has none."""
    return [
        text.strip()[:LONGEST_BULLET]
        for text in _items(answer, "lessons", _MOST_LESSONS)
        if isinstance(text, str) and text.strip()
    ]


def read_tags(answer: object, book: Playbook) -> list[PlaybookOperation]:
    """The first tag of each bullet that is in the playbook, as an operation on its counters."""
    known = {bullet.id for bullet in book.bullets}
    tags: dict[str, PlaybookOperation] = {}
    for item in _items(answer, "tags", 4 * len(known)):
        given = item if isinstance(item, Mapping) else {}
        id_, tag = given.get("id"), given.get("tag")
        if isinstance(id_, str) and id_ in known and tag in ("helpful", "harmful"):
            helpful, harmful = int(tag == "helpful"), int(tag == "harmful")
            tags.setdefault(id_, PlaybookOperation("UPDATE", id_, "", helpful, harmful))
    return list(tags.values())


def read_curation(answer: object) -> tuple[list[PlaybookOperation], int]:
    """The operations in a curator's answer, without counters, which are not its to set; and how
    many were dropped.
    """
    kept, dropped = read_operations(_items(answer, "operations", _MOST_OPERATIONS))
    return [replace(operation, helpful=0, harmful=0) for operation in kept], dropped


def _step(node: str, prompt: str, book: Playbook) -> list[str]:
    """A node with its prompt and, one line of JSON each, its lessons."""
    lines = [
        json.dumps(
            {"id": each.id, "text": each.text, "helpful": each.helpful, "harmful": each.harmful},
            ensure_ascii=False,
        )
        for each in book.bullets
    ]
    return [
        f"The step is called {node}. Its prompt is\n{fenced(prompt, _MOST_TEXT)}",
        "Its lessons:\n" + ("\n".join(lines) or "none"),
    ]


def _items(answer: object, name: str, most: int) -> list[Any]:
    """The first items of a list in an answer; none where there is no list."""
    found = answer.get(name) if isinstance(answer, Mapping) else None
    return found[:most] if isinstance(found, list) else []
