"""The items of each style: how many proposals pass, and how varied they are."""

from __future__ import annotations

from itertools import islice
from statistics import fmean
from typing import Any, Final

from evals.generate_calls import declared
from weft.agents.calls import STYLES, GenerateOptions, check_item, proposals

_COUNT: Final = 400


def rows(quick: bool) -> list[dict[str, Any]]:
    """Of proposals from composed tools, half of them under drawn schemas."""
    found: list[dict[str, Any]] = []
    count = _COUNT // 8 if quick else _COUNT
    for style in STYLES:
        options = GenerateOptions(count, {style: 1.0}, seed=1, variants=0.5)
        proposed = list(islice(proposals(declared.TOOLS, options), count))
        if not proposed:
            continue
        passed = [item for item in proposed if check_item(item) is None]
        shapes = {item.skeleton() for item in passed}
        queries = {item.query for item in passed}
        words = {word for query in queries for word in query.lower().split()}
        figures = {
            "accepted": (len(passed) / len(proposed), "share"),
            "skeletons": (len(shapes) / len(passed), "share"),
            "different_queries": (len(queries) / len(passed), "share"),
            "words": (fmean(len(item.query.split()) for item in passed), "words"),
            "vocabulary": (len(words), "words"),
        }
        found += [
            {
                "case": f"style_{style}",
                "system": "rules",
                "metric": metric,
                "value": value,
                "unit": unit,
            }
            for metric, (value, unit) in figures.items()
        ]
    return found
