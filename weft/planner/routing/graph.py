"""Graphs of tools with their inputs, results and costs; reads graphs from TaskBench files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from weft.core.errors import BuildError, DuplicateName
from weft.engine.graph.node import Retry
from weft.planner.routing.cost import CallCost

_ID_LETTERS = re.compile(r"[/\[\]#~]")

SourceNames = str | tuple[str, ...]
"""The name of a value; of several names, any one will do."""


@dataclass(frozen=True, slots=True)
class ToolInput:
    """One input of a tool: any of `sources`, passed as `parameter` (None: order only)."""

    parameter: str | None
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoutedTool:
    """A tool in the graph. A call needs all of its inputs: it is an AND-join of them.

    needs     parameter -> its sources: names of tools, or of results
    after     what must exist before, though it is not passed on
    gives     names of its result, in addition to the tool's own
    given     constant arguments
    calls     the tool's name at the tool runner, where it differs from `name`
    cost      the expected cost of a call, before the history of calls updates it
    timeout_s, retry, resource   the engine's policy for one call
    """

    name: str
    needs: Mapping[str, SourceNames] = field(default_factory=dict)
    gives: tuple[str, ...] = ()
    after: tuple[SourceNames, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    calls: str = ""
    cost: CallCost = field(default_factory=CallCost)
    timeout_s: float | None = 60.0
    retry: Retry | None = None
    resource: str | None = None

    @property
    def tool(self) -> str:
        """The name at the tool runner."""
        return self.calls or self.name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its result."""
        return tuple(dict.fromkeys((self.name, *self.gives)))

    @property
    def demands(self) -> tuple[ToolInput, ...]:
        """Its inputs, those with a parameter first."""
        passed = [ToolInput(name, _several(sources)) for name, sources in self.needs.items()]
        return (*passed, *(ToolInput(None, _several(sources)) for sources in self.after))


class ToolGraph:
    """The tools of routes. One may follow another if it can use that one's result.

    `tools` by name, in declared order; `demands` of each; `users` maps a name to the inputs (tool,
    and index among its demands) that it meets; `labels` are the tools' names as parts of ids.

    Raises: `DuplicateName` when two tools have one name, or one gives another tool's name;
    `BuildError` for an input without sources.
    """

    __slots__ = ("demands", "labels", "names", "order", "tools", "users")

    def __init__(self, tools: Iterable[RoutedTool]) -> None:
        self.tools: dict[str, RoutedTool] = {}
        for tool in tools:
            if tool.name in self.tools:
                raise DuplicateName(f"two tools are called {tool.name!r}", hint="rename one")
            self.tools[tool.name] = tool
        for tool in self.tools.values():
            for name in tool.gives:
                if name != tool.name and name in self.tools:
                    hint = "give it another name"
                    raise DuplicateName(f"{tool.name!r} gives {name!r}, a tool's name", hint=hint)
        self.labels = _labels(self.tools)
        self.order = {name: index for index, name in enumerate(self.tools)}
        self.demands = {name: tool.demands for name, tool in self.tools.items()}
        self.users: dict[str, list[tuple[str, int]]] = {}
        for name, demands in self.demands.items():
            for place, demand in enumerate(demands):
                if not demand.sources:
                    hint = "name what may meet it, or leave it out"
                    raise BuildError(f"{name!r} needs one of no things", hint=hint)
                for source in dict.fromkeys(demand.sources):
                    self.users.setdefault(source, []).append((name, place))
        given = (name for tool in self.tools.values() for name in tool.names)
        self.names = frozenset((*given, *self.users))

    def follows(self) -> Iterable[tuple[str, str]]:
        """The "may follow" edges, (tool, tool that can use its result), without duplicates."""
        for tool in self.tools.values():
            users = [user for name in tool.names for user, _ in self.users.get(name, ())]
            yield from ((tool.name, user) for user in dict.fromkeys(users))


def _labels(names: Iterable[str]) -> dict[str, str]:
    """Each name without the special characters of ids, made unique."""
    labels: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = _ID_LETTERS.sub("_", name).lstrip(".") or "tool"
        numbered = (f"{plain}_{number}" for number in count(2))
        label = plain if plain not in taken else next(n for n in numbered if n not in taken)
        labels[name] = label
        taken.add(label)
    return labels


def _several(sources: SourceNames) -> tuple[str, ...]:
    return (sources,) if isinstance(sources, str) else tuple(sources)


MAX_BYTES: Final = 16 * 1024 * 1024


def read_tool_graph(path: Path | str, *, cost: CallCost | None = None) -> ToolGraph:
    """The graph in a file such as TaskBench's `graph_desc.json` (arXiv 2311.18760).

    {"nodes": [{"id", "input-type": [...], "output-type": [...]}],
     "links": [{"source", "target", "type"}]}

    A link means that its target may follow its source and take values of that type. Each input of a
    tool is filled by a tool that it may follow, or by the value named after the type; its parameter
    is named after the type (`text`, and `text_2` for a second one). A tool whose inputs have no
    types may follow any linked tool, or the value `start`.

    Raises: `BuildError` when the file has another form.
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
    nodes: list[Mapping[str, Any]], links: list[Mapping[str, Any]], *, cost: CallCost | None = None
) -> ToolGraph:
    """The graph of `nodes` and `links` in the form of `read_tool_graph`."""
    before: dict[str, dict[str, list[str]]] = {}
    for link in links:
        before.setdefault(link["target"], {}).setdefault(link["type"], []).append(link["source"])
    return ToolGraph(_tool(node, before.get(node["id"], {}), cost or CallCost()) for node in nodes)


def _tool(node: Mapping[str, Any], before: Mapping[str, list[str]], cost: CallCost) -> RoutedTool:
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
