"""Queries that people wrote, with their calls, as items that train a planner. Seal-Tools, dev set.

    python -m evals.planning.natural_calls --out FILE [--seed N]

Of each query: its tools alone, among others of their fields, and only others, where nothing fits.
Left out: values that the query does not have, and calls that do not fit their tools. A planner that
has learnt from them says nothing about these queries: it is no system of `evals.catalogue`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from evals.planning.data import folder, load_lines
from weft.agents.calls.catalogue import CallTool, read_tools
from weft.agents.calls.turns import turns_of
from weft.core.errors import InputError

_QUERIES: Final = "programs/sealtools-dev/dev_clean.jsonl"
_TOOLS: Final = "programs/toolcatalogue"
_OTHERS: Final = 3


def items(seed: int = 0) -> Iterator[dict[str, Any]]:
    """The items, three of a query at most. Raises: `Skipped` without data."""
    tools = {tool.name: tool for tool in read_tools(folder(_TOOLS) / "tools.jsonl", [])}
    fields: dict[str, list[CallTool]] = {}
    for tool in tools.values():
        fields.setdefault(tool.field, []).append(tool)
    rng = Random(f"natural-{seed}")
    for line in load_lines(_QUERIES):
        calls = [{"name": one["api"], "arguments": one["parameters"]} for one in line["calling"]]
        if not _usable(line["query"], calls, tools):
            continue
        called = list(dict.fromkeys(call["name"] for call in calls))
        near = [one for name in called for one in fields[tools[name].field]]
        near = [one for one in near if one.name not in called]
        others = rng.sample(near, min(_OTHERS, len(near)))
        own = [tools[name] for name in called]
        far = rng.sample(list(tools.values()), rng.randint(1, _OTHERS))
        yield _item(line["query"], own, calls, rng)
        yield _item(line["query"], own + others, calls, rng)
        if not any(one.name in called for one in far):
            yield _item(line["query"], far, [], rng)


def _usable(query: str, calls: Sequence[Mapping[str, Any]], tools: Mapping[str, CallTool]) -> bool:
    """Whether the calls are a plan for known tools, with values that the query has."""
    if any(call["name"] not in tools for call in calls):
        return False
    for call in calls:
        for value in call["arguments"].values():
            if str(value).lower() not in query.lower() or str(value).startswith("API_call"):
                return False
    try:
        own = [tools[call["name"]].document() for call in calls]
        list(turns_of({"query": query, "tools": own, "calls": list(calls), "ask": []}))
    except InputError:
        return False
    return True


def _item(
    query: str, tools: list[CallTool], calls: Sequence[Mapping[str, Any]], rng: Random
) -> dict[str, Any]:
    offered = rng.sample(tools, len(tools))
    shown = [tool.document() for tool in offered]
    return {"query": query, "tools": shown, "calls": list(calls), "ask": [], "style": "natural"}


def main() -> None:
    """Write the items as JSON lines."""
    parser = argparse.ArgumentParser(prog="evals.planning.natural_calls")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    found = list(items(asked.seed))
    asked.out.write_text("".join(json.dumps(one) + "\n" for one in found), encoding="utf-8")
    print(f"{len(found)} items in {asked.out}")


if __name__ == "__main__":
    main()
