"""Plain functions that edited workflows call: a majority, and how far answers agree."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from weft.agents.tools import tool


@tool(pure=True)
def majority(values: list[Any]) -> Any:
    """The most frequent value; of equally frequent ones the first.

    Texts count without blanks around them. Raises: `ValueError` without values.
    """
    return _agreement(values)["value"]


@tool(pure=True)
def agreement(values: list[Any]) -> dict[str, Any]:
    """`{value, share}`: the majority, and its share of all values. Raises: as `majority`."""
    return _agreement(values)


def _agreement(values: list[Any]) -> dict[str, Any]:
    if not values:
        raise ValueError("no answers to count")
    keys = [_key(value) for value in values]
    winner = Counter(keys).most_common(1)[0][0]
    return {"value": values[keys.index(winner)], "share": keys.count(winner) / len(keys)}


def _key(value: Any) -> str:
    return json.dumps(value.strip() if isinstance(value, str) else value, sort_keys=True)
