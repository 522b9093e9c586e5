"""A few tools with typed results, and the plan of the documentation over them."""

from __future__ import annotations

from typing import Any

from weft.core.values import ToolSpec

STRING = {"type": "string"}
NUMBER = {"type": "number"}


def record(*optional: str, **members: Any) -> dict[str, Any]:
    """The schema of an object; all members but the `optional` ones are required."""
    required = [name for name in members if name not in optional]
    return {"type": "object", "properties": members, "required": required}


LINES = {"type": "array", "items": {"$ref": "#/$defs/Line"}}
SHOP = (
    ToolSpec(
        "price",
        "What one item costs.",
        record(
            "unit", item=STRING, unit={"enum": ["kg", "lb"], "description": "of what is weighed"}
        ),
        record("note", amount=NUMBER, note=STRING),
    ),
    ToolSpec(
        "total",
        "The sum of amounts, with one line for each.",
        record(amounts={"type": "array", "items": NUMBER}),
        {**record(sum=NUMBER, lines=LINES), "$defs": {"Line": record(title=STRING, amount=NUMBER)}},
    ),
    ToolSpec("describe", "", record(text=STRING, place={"type": "integer", "minimum": 0}), STRING),
    ToolSpec("warn", "Tell somebody.", record(text=STRING)),
)
TEXT = """\
# both prices can be looked up at once
1. price(item="tea")
2. price(item="coffee")
3. total(amounts=[$1.amount, $2.amount])
4. describe(text=$item.title, place=$index) for each $3.lines
5. warn(text="too dear: over $3") if $3.sum > 10
6. join($3, $4)
"""
