"""Pareto-optimal choices of one implementation for each node of a DAG: time, cost, success.

Multi-objective labels as in Martins (1984), on whole graphs instead of paths: a node begins when
the last of what it needs has ended, so Dijkstra's algorithm does not apply. Knows no document.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final, TypeAlias

from weft.core.errors import InputError

_MOST_LABELS: Final = 20_000


@dataclass(frozen=True, slots=True)
class PathOption:
    """One implementation of a node: seconds, money, and the probability that it succeeds."""

    name: str
    seconds: float = 0.0
    cost: float = 0.0
    success: float = 1.0


@dataclass(frozen=True, slots=True)
class PathNode:
    """The options of a node, and the nodes that it waits for.

    `first`: one of `needs` is enough (a join `any`), so that the best of their successes counts
    instead of the product. Its time is that of the slowest all the same: an upper bound.
    """

    options: tuple[PathOption, ...]
    needs: tuple[str, ...] = ()
    first: bool = False


@dataclass(frozen=True, slots=True)
class ParetoPath:
    """A choice for every node: seconds from start to end, cost of all, success of the whole."""

    choice: Mapping[str, str]
    seconds: float
    cost: float
    success: float


_Label: TypeAlias = tuple[float, ...]
"""-success, cost, the end of what has ended and is waited for no more, then the ends of live nodes,
and for each open `first` node minus the best success so far: smaller is better everywhere."""


@dataclass(frozen=True, slots=True)
class _Partial:
    label: _Label
    choice: tuple[int, ...]


def pareto_paths(
    nodes: Mapping[str, PathNode], *, epsilon: float = 0.0, most_labels: int = _MOST_LABELS
) -> tuple[ParetoPath, ...]:
    """The choices that no other one beats in time, cost and success; by falling success.

    Exact with `epsilon` 0. Else, for every choice there is one in the result with at most
    (1 + epsilon) times its time and cost, and at least its success / (1 + epsilon): each of n steps
    keeps one label of each cell of a grid with ratio (1 + epsilon)^(1/n), and sums, maxima and
    products do not enlarge ratios (Warburton 1987).

    Raises: `InputError` for a cycle, for a node without options or figures out of range, and where
    more than `most_labels` labels are left after a step.
    """
    order = _order(nodes)
    search = _PathSearch(nodes, order, epsilon)
    partials = [_Partial((-1.0, 0.0, 0.0), ())]
    for place in range(len(order)):
        partials = search.step(partials, place)
        if len(partials) > most_labels:
            hint = "give an epsilon, such as 0.01; the result is within that share of the front"
            raise InputError(f"{len(partials):,} combinations are open at once", hint=hint)
    return tuple(
        ParetoPath(
            {
                name: nodes[name].options[at].name
                for name, at in zip(order, each.choice, strict=True)
            },
            each.label[2],
            each.label[1],
            -each.label[0],
        )
        for each in partials
    )


class _PathSearch:
    """The steps of one search; after step i the label ends with what `_live[i]` and `_open[i]` say.

    A node is live while another waits for it; a `first` node is open from the first of its members
    on. A member counts in it alone where nothing else needs the member.
    """

    def __init__(self, nodes: Mapping[str, PathNode], order: Sequence[str], epsilon: float) -> None:
        self._nodes, self._order = nodes, order
        users: dict[str, list[str]] = {name: [] for name in nodes}
        for name, node in nodes.items():
            for need in node.needs:
                users[need].append(name)
        self._group = {
            name: of[0] for name, of in users.items() if len(of) == 1 and nodes[of[0]].first
        }
        at = {name: place for place, name in enumerate(order)}
        last = {
            name: max((at[user] for user in of), default=at[name]) for name, of in users.items()
        }
        self._live: list[list[str]] = [[]]
        self._open: list[list[str]] = [[]]
        for place in range(len(order)):
            self._live.append([name for name in order[: place + 1] if last[name] > place])
            begun = dict.fromkeys(self._group.get(name, "") for name in order[: place + 1])
            self._open.append([name for name in begun if name and at[name] > place])
        self._log = math.log1p(epsilon) / max(1, len(order)) if epsilon > 0 else 0.0

    def step(self, partials: Iterable[_Partial], place: int) -> list[_Partial]:
        """Every partial with every option of the node at `place`, without dominated ones."""
        node = self._nodes[self._order[place]]
        found = [
            _Partial(self._extended(each.label, place, option), (*each.choice, at))
            for each in partials
            for at, option in enumerate(node.options)
        ]
        if self._log:
            found = _one_a_cell(found, self._log)
        return _undominated(found)

    def _extended(self, label: _Label, place: int, option: PathOption) -> _Label:
        name = self._order[place]
        node = self._nodes[name]
        live, opened = self._live[place], self._open[place]
        ends = dict(zip(live, label[3 : 3 + len(live)], strict=True))
        best = dict(zip(opened, label[3 + len(live) :], strict=True))
        success, cost, over = label[:3]
        if name in best:
            success *= -best[name]
        end = max((ends[need] for need in node.needs), default=0.0) + option.seconds
        ends[name] = end
        group = self._group.get(name)
        if group is None:
            success *= option.success
        else:
            best[group] = min(best.get(group, 0.0), -option.success)
        after = self._live[place + 1]
        gone = (value for key, value in ends.items() if key not in after)
        return (
            success,
            cost + option.cost,
            max(over, *gone) if after != list(ends) else over,
            *(ends[key] for key in after),
            *(best[key] for key in self._open[place + 1]),
        )


def _undominated(partials: list[_Partial]) -> list[_Partial]:
    """Those that no other one beats; of equal labels the first. In lexicographic order, what
    dominates comes first.
    """
    kept: list[_Partial] = []
    for each in sorted(partials, key=lambda partial: partial.label):
        own = each.label
        if not any(all(map(float.__le__, other.label, own)) for other in kept):
            kept.append(each)
    return kept


def _one_a_cell(partials: Iterable[_Partial], log: float) -> list[_Partial]:
    cells: dict[tuple[int | None, ...], _Partial] = {}
    for each in partials:
        cell = tuple(math.floor(math.log(abs(x)) / log) if x else None for x in each.label)
        cells.setdefault(cell, each)
    return list(cells.values())


def _order(nodes: Mapping[str, PathNode]) -> list[str]:
    """A topological order. Raises: `InputError`."""
    for name, node in nodes.items():
        if not node.options:
            raise InputError(f"{name} has no options", hint="give it at least one")
        for option in node.options:
            figures = (option.seconds, option.cost, option.success)
            if not all(math.isfinite(x) and x >= 0 for x in figures):
                raise InputError(f"{name}: {option.name} has a figure below 0, or none")
        unknown = [need for need in node.needs if need not in nodes]
        if unknown:
            raise InputError(f"{name} waits for {unknown[0]}, which there is not")
    try:
        return list(TopologicalSorter({k: node.needs for k, node in nodes.items()}).static_order())
    except CycleError as error:
        raise InputError(f"a cycle: {' -> '.join(map(str, error.args[1]))}") from error
