"""Graphs of tools from files in the form that TaskBench publishes. Knows no tool runner."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from weft.core.errors import BuildError
from weft.planner.routing.cost import Cost
from weft.planner.routing.graph import RoutedTool, ToolGraph

MAX_BYTES: Final = 16 * 1024 * 1024


def read_tool_graph(path: Path | str, *, cost: Cost | None = None) -> ToolGraph:
    """The graph in a file such as TaskBench's `graph_desc.json` (arXiv 2311.18760).

    {"nodes": [{"id", "input-type": [...], "output-type": [...]}],
     "links": [{"source", "target", "type"}]}

    A link says that its target may follow its source, taking what is of that type. Each input of a
    tool is filled by a tool that it may follow, or by what is there under the name of the type; its
    parameter is called after the type (`text`, and `text_2` where it takes two). A tool whose
    inputs have no types may follow any tool that is linked to it, or what is there as `start`.

    Raises: `BuildError` when the file cannot be read as that.
    """
    file = Path(path)
    try:
        if file.stat().st_size > MAX_BYTES:
            raise BuildError(f"{file} is larger than {MAX_BYTES} bytes", hint="split the graph")
        raw = json.loads(file.read_text("utf-8"))
        return graph_of_links(raw["nodes"], raw["links"], cost=cost)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        hint = 'it holds {"nodes": [...], "links": [...]}, see the TaskBench data'
        raise BuildError(f"{file} is no graph of tools: {error!r}", hint=hint) from error


def graph_of_links(
    nodes: list[Mapping[str, Any]],
    links: list[Mapping[str, Any]],
    *,
    cost: Cost | None = None,
) -> ToolGraph:
    """The graph of `nodes` and `links` as in a file of `read_tool_graph`."""
    before: dict[str, dict[str, list[str]]] = {}
    for link in links:
        before.setdefault(link["target"], {}).setdefault(link["type"], []).append(link["source"])
    return ToolGraph(_tool(node, before.get(node["id"], {}), cost or Cost()) for node in nodes)


def _tool(node: Mapping[str, Any], before: Mapping[str, list[str]], cost: Cost) -> RoutedTool:
    name = str(node["id"])
    if "input-type" in node:
        taken = [str(kind) for kind in node["input-type"]]
        needs = {
            parameter: tuple(dict.fromkeys((kind, *before.get(kind, ()))))
            for parameter, kind in _parameters(taken)
        }
        return RoutedTool(name, needs, cost=cost)
    sources = [source for group in before.values() for source in group]
    return RoutedTool(name, after=(("start", *dict.fromkeys(sources)),), cost=cost)


def _parameters(kinds: list[str]) -> Iterator[tuple[str, str]]:
    for place, kind in enumerate(kinds):
        count = kinds[: place + 1].count(kind)
        yield (kind if count == 1 else f"{kind}_{count}"), kind
