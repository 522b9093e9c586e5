"""API-Bank's dialogues and the tools that they call. Scores nothing.

A dialogue is left out where one of its tools is not described (a search for tools, mostly).
"""

from __future__ import annotations

import ast
import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from evals.planning.data import folder, load_lines
from evals.planning.effort import Skipped
from weft.core.values import ToolSpec

DISTRACTORS: Final = 4
_FOLDER: Final = "programs/apibank"
_CLASS: Final = "\u7c7b\u540d"  # "class name"
_RESULT_CHARS: Final = 600


@dataclass(frozen=True, slots=True)
class Turn:
    """Who speaks; of an API the call and its recorded result, or exception."""

    role: str
    text: str = ""
    tool: str = ""
    arguments: Mapping[str, str] | None = None
    result: Any = None


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The turns, and the tools called with some that are not needed, in a mixed order."""

    id: str
    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...]


def dialogues() -> tuple[list[Dialogue], int]:
    """The dialogues, and how many were left out. Raises: `Skipped`."""
    all_lines = load_lines(f"{_FOLDER}/dialogues.jsonl")
    tools = _tools(_recorded(all_lines))
    found = []
    for line in all_lines:
        turns = tuple(_turn(turn) for turn in line["turns"])
        called = dict.fromkeys(turn.tool for turn in turns if turn.tool)
        if called and called.keys() <= tools.keys():
            found.append(Dialogue(line["file"], turns, _offered(line["file"], list(called), tools)))
    return found, len(all_lines) - len(found)


def transcript(turns: Iterable[Turn]) -> str:
    """The turns as lines, with calls and their results; long results are cut."""
    return "\n".join(_line(turn) for turn in turns)


def _line(turn: Turn) -> str:
    if not turn.tool:
        return f"{'User' if turn.role == 'User' else 'Assistant'}: {turn.text}"
    shown = json.dumps(turn.result, ensure_ascii=False)[:_RESULT_CHARS]
    return f"Call: {turn.tool} {json.dumps(turn.arguments, ensure_ascii=False)}\nResult: {shown}"


def _turn(given: Mapping[str, Any]) -> Turn:
    if given["role"] != "API":
        return Turn(given["role"], given["text"])
    result = given["result"] or {}
    found = result.get("output") if not result.get("exception") else result["exception"]
    return Turn("API", "", given["api_name"], given["param_dict"], found)


def _offered(name: str, called: list[str], tools: Mapping[str, ToolSpec]) -> tuple[ToolSpec, ...]:
    draw = Random(name)
    others = [one for one in tools if one not in called]
    names = [*called, *draw.sample(others, min(DISTRACTORS, len(others)))]
    draw.shuffle(names)
    return tuple(tools[one] for one in names)


def _recorded(lines: Iterable[Mapping[str, Any]]) -> Mapping[str, Mapping[str, None]]:
    """The parameters that calls of each tool were recorded with."""
    found: dict[str, dict[str, None]] = {}
    for line in lines:
        for turn in line["turns"]:
            if turn["role"] == "API":
                found.setdefault(turn["api_name"], {}).update(dict.fromkeys(turn["param_dict"]))
    return found


def _tools(recorded: Mapping[str, Mapping[str, None]]) -> Mapping[str, ToolSpec]:
    """Every described tool; recorded arguments are all texts, and so are the parameters.

    Some descriptions name other parameters than the calls have: there the calls are right.
    """
    path = folder(_FOLDER) / "all_apis.csv"
    if not path.is_file():
        raise Skipped(f"there is no file {path}")
    rows: Sequence[Mapping[str, str]]
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
    names = [(row[_CLASS], row["api_info"]) for row in rows]
    found = {name: _tool(name, info, recorded.get(name, {})) for name, info in names}
    return {name: tool for name, tool in found.items() if tool is not None}


def _tool(name: str, described: str, recorded: Mapping[str, None]) -> ToolSpec | None:
    """The assignments `description` and `input_parameters`, read as literals; None without."""
    try:
        parts = {
            part.targets[0].id: ast.literal_eval(part.value)
            for part in ast.parse(described).body
            if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name)
        }
    except (SyntaxError, ValueError):
        return None
    if "description" not in parts:
        return None
    given = parts.get("input_parameters")
    known = given if isinstance(given, Mapping) else {}
    parameters = known if recorded.keys() <= known.keys() else recorded
    properties = {
        key: {"type": "string", "description": _described(known.get(key))} for key in parameters
    }
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return ToolSpec(name, str(parts["description"]), schema)


def _described(parameter: object) -> str:
    return str(parameter.get("description", "")) if isinstance(parameter, Mapping) else ""
