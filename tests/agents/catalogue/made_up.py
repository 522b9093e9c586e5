"""A small catalogue of our own, and a large one from a seed."""

from __future__ import annotations

import random
from typing import Any

from weft.agents.catalogue.tree import Catalogue
from weft.core.values import ToolSpec

ROWS: list[dict[str, Any]] = [
    {
        "type": "function",
        "category": "Weather/Forecast",
        "function": {
            "name": "getRainForecast",
            "description": "How much rain a town expects.",
            "parameters": {
                "type": "object",
                "properties": {"town": {"type": "string", "description": "name of the town"}},
                "required": ["town"],
            },
        },
    },
    {
        "name": "getWindForecast",
        "field": "Weather/Forecast",
        "description": "How strong the wind is going to be.",
        "parameters": {"town": {"type": "str"}},
    },
    {
        "name": "pastStorms",
        "categories": ["Weather", "History"],
        "description": "Storms of a year.",
        "parameters": {"year": {"type": "int"}},
    },
    {
        "name": "bookTrain",
        "category": "Travel",
        "subcategory": "Rail",
        "description": "Book a seat in a train.",
        "parameters": {"start": {"type": "str"}, "goal": {"type": "str"}},
    },
    {
        "name": "findHotel",
        "category": "Travel",
        "subcategory": "Rooms",
        "description": "Hotels with a free room.",
        "parameters": {"town": {"type": "str"}},
    },
    {
        "name": "convertMoney",
        "category": "Finance",
        "description": "An amount in another currency.",
        "parameters": {"amount": {"type": "float"}, "currency": {"type": "str"}},
    },
]


def spec(name: str, description: str = "", *parameters: str) -> ToolSpec:
    members = {one: {"type": "string"} for one in parameters}
    return ToolSpec(name, description, {"type": "object", "properties": members})


def large(count: int = 3_000, seed: int = 7) -> Catalogue:
    """`count` tools in 60 fields with 4 subfields each, of words that nobody knows."""
    source = random.Random(seed)
    letters = "bcdfghklmnprstvz"
    syllables = [a + b for a in letters for b in "aeiou"]

    def word() -> str:
        return "".join(source.choices(syllables, k=3))

    fields = [(word().title(), word().title()) for _ in range(240)]
    fields = [(fields[number % 60][0], second) for number, (_, second) in enumerate(fields)]
    tools = {}
    while len(tools) < count:
        name = f"{word()}{word().title()}"
        tools[name] = spec(name, f"{word()} the {word()} of {word()}", word(), word())
    return Catalogue((tool, source.choice(fields)) for tool in tools.values())
