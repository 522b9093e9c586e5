"""Right answers of BFCL v4 (development sets) that the gates refuse.

The rules of the semantic gate were tuned on these items, so the figures are not those of unseen
data. Of a value that may be left out, the first that BFCL allows is taken, said or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from evals.planning.quality import bfcl
from evals.planning.quality.ast_match import gold_calls
from evals.reasoning.report import Target
from weft.agents.calls import CallItem, CallTool, GoldCall, check_item

CATEGORIES: Final[Mapping[str, str]] = {
    "simple": "simple_python",
    "parallel": "parallel",
    "parallel_multiple": "parallel_multiple",
    "irrelevance": "irrelevance",
}
TARGETS: Final = tuple(
    Target(f"gold_{style}", "gates", "refused", 0.1, at_most=True) for style in CATEGORIES
)


def rows(quick: bool) -> list[dict[str, Any]]:
    """The share refused, and of which reason; all items, also where it is to be quick.

    Raises: `Skipped` without data.
    """
    del quick
    found: list[dict[str, Any]] = []
    for style, category in CATEGORIES.items():
        items = [gold_item(item, style) for item in bfcl.items(category)]
        reasons = Counter(
            refusal.reason for item in items if (refusal := check_item(item)) is not None
        )
        figures = {"refused": (reasons.total() / len(items), "share")}
        figures["items"] = (len(items), "items")
        figures |= {
            f"refused_{reason}": (count, "items") for reason, count in reasons.most_common()
        }
        found += [
            {
                "case": f"gold_{style}",
                "system": "gates",
                "metric": metric,
                "value": value,
                "unit": unit,
            }
            for metric, (value, unit) in figures.items()
        ]
    return found


def gold_item(item: bfcl.Item, style: str) -> CallItem:
    """BFCL's item with its gold calls."""
    tools = tuple(CallTool(tool.name, tool.description, tool.parameters) for tool in item.tools)
    calls = tuple(GoldCall(name, given) for name, given in gold_calls(item.gold, item.functions))
    return CallItem(item.question, tools, calls, style, "gold of BFCL")
