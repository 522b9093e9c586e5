"""BFCL's items for Python calls, with their functions as tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evals.planning.data import load_lines
from evals.planning.quality.ast_match import Allowed
from weft.core.values import JsonSchema, ToolSpec

CATEGORIES = ("parallel", "parallel_multiple")
UNANSWERED = "irrelevance"
"""The category in which no function fits the question."""

_KINDS = {"dict": "object", "float": "number", "tuple": "array"}
_KEPT = ("description", "enum", "default", "required")


@dataclass(frozen=True, slots=True)
class Item:
    """A question, the functions as published, the same as tools, and the calls that are right."""

    id: str
    question: str
    functions: Sequence[Mapping[str, Any]]
    tools: tuple[ToolSpec, ...]
    gold: Sequence[Mapping[str, Allowed]]


def items(category: str) -> list[Item]:
    """All items of a category; those of `irrelevance` have no calls. Raises: `Skipped`."""
    answers = []
    if category != UNANSWERED:
        answers = load_lines(f"planner/bfcl_v4/possible_answer/BFCL_v4_{category}.json")
    gold = {answer["id"]: answer["ground_truth"] for answer in answers}
    return [
        Item(
            item["id"],
            item["question"][0][-1]["content"],
            item["function"],
            tuple(tool(function) for function in item["function"]),
            gold[item["id"]] if category != UNANSWERED else (),
        )
        for item in load_lines(f"planner/bfcl_v4/BFCL_v4_{category}.json")
    ]


def tool(function: Mapping[str, Any]) -> ToolSpec:
    """A function as published, as a tool whose parameters are a JSON Schema."""
    parameters = {**schema(function["parameters"]), "additionalProperties": False}
    return ToolSpec(function["name"], function["description"], parameters, pure=True)


def schema(described: Mapping[str, Any]) -> JsonSchema:
    """BFCL's type description as JSON Schema. `any` is text, as its own check has it."""
    found: dict[str, Any] = {key: described[key] for key in _KEPT if key in described}
    kind = described["type"]
    found["type"] = "string" if kind == "any" else _KINDS.get(kind, kind)
    if "properties" in described:
        found["properties"] = {
            name: schema(inner) for name, inner in described["properties"].items()
        }
    if "items" in described:
        found["items"] = schema(described["items"]) if "type" in described["items"] else {}
    return found
