"""A few tools of a robot with facts, as texts and specs, and the world that they are in."""

from __future__ import annotations

from typing import Any

from weft.core.facts import Fact, parse_fact
from weft.core.values import ToolSpec


def spec(name: str, *parameters: str, schema: Any = None, **declared: Any) -> ToolSpec:
    """A tool with text parameters (or those of `schema`) and these declarations."""
    properties = schema or {each: {"type": "string"} for each in parameters}
    shape = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    declared = {key: tuple(v) if isinstance(v, list) else v for key, v in declared.items()}
    return ToolSpec(name, "", shape, **declared)


GOTO = spec(
    "goto",
    "room",
    needs=["at(?here)", "next(?here, {room})"],
    makes=["not at(*)", "at({room})"],
    fill=True,
)
OPEN = spec(
    "open",
    "place",
    needs=["at(?room)", "inside({place}, ?room)", "closed({place})"],
    makes=["not closed({place})"],
    fill=True,
)
GRASP = spec(
    "grasp",
    "thing",
    needs=["on({thing}, ?p)", "inside(?p, ?r)", "at(?r)", "not closed(?p)", "not holding(*)"],
    makes=["holding({thing})", "not on({thing}, *)"],
)
PUT = spec(
    "put",
    "thing",
    "place",
    needs=["holding({thing})", "at(?room)", "inside({place}, ?room)", "not closed({place})"],
    makes=["on({thing}, {place})", "not holding({thing})"],
)
SAY = spec("say", "text")
TOOLS = (GOTO, OPEN, GRASP, PUT, SAY)

FACTS = (
    "at(hall)",
    "next(hall, kitchen)",
    "next(kitchen, hall)",
    "next(hall, attic)",
    "next(attic, hall)",
    "inside(fridge, kitchen)",
    "inside(table, attic)",
    "on(apple, fridge)",
    "on(cup, table)",
    "closed(fridge)",
)


def world(*texts: str) -> frozenset[Fact]:
    """The kitchen's facts, or `texts`."""
    return frozenset(map(parse_fact, texts or FACTS))
