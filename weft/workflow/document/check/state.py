"""Checks of a workflow's state: that every read and write has one meaning in any order of ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NoReturn

from weft.core.errors import BuildError, JoinError, UnknownReference
from weft.workflow.document.breaks import breaks_of
from weft.workflow.document.defect_log import DefectLog
from weft.workflow.document.expressions import BadExpression
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.spec.document import bodies, walk
from weft.workflow.document.spec.nodes import BaseNode, Block, LoopNode, MapNode, NodeSpec
from weft.workflow.document.spec.state import COMMUTATIVE
from weft.workflow.document.state_order import (
    StateOrder,
    reads_in,
    replaced_nodes,
    writes_inside,
    written_fields,
)
from weft.workflow.document.templates import uses_of
from weft.workflow.document.unit import Unit

_REDUCERS = "append, extend, union, add, max, min, merge, or replace: the last in the file wins"


def check_state(unit: Unit, log: DefectLog) -> None:
    """Find writes and reads of the state that have no meaning, or more than one.

    The names of nodes are known to be right. `log` has the defects.
    """
    _StateChecker(unit, log).check()


class _StateChecker:
    def __init__(self, unit: Unit, log: DefectLog) -> None:
        self._unit = unit
        self._log = log
        self._fields = unit.document.state

    def check(self) -> None:
        """Check every node, and then every level of nodes."""
        nodes = self._unit.document.nodes
        try:
            for path, step in walk(nodes):
                with self._log:
                    self._node(path, step)
            if self._fields:
                self._level(nodes, {name: ("nodes", name) for name in nodes})
        except BadExpression:
            return  # the check of references reports it

    # -- nodes ---------------------------------------------------------------------------------

    def _node(self, path: KeyPath, step: BaseNode) -> None:
        for name in step.writes:
            if name not in self._fields:
                hint = choice_hint(name, list(self._fields)) or "declare it under `state`"
                error = UnknownReference(f"the state has no field `{name}`", hint=hint)
                self._unit.fail(error, (*path, "writes", name), at_key=True)
        if not writes_inside(step):
            return
        if step.cache is not None:
            hint = "give `cache` to the nodes in it, or write the state from its own value"
            self._fail(path, "a cached result repeats no writes of the nodes inside", hint, "cache")
        if isinstance(step, MapNode):
            self._map(path, step)
        elif isinstance(step, LoopNode):
            self._loop(path, step)

    def _map(self, path: KeyPath, step: MapNode) -> None:
        if step.mode not in ("all", "best_effort"):
            hint = "write the state from the map's own value, with `writes` beside `map`"
            self._fail(path, f"a map with the mode {step.mode} has no writes inside", hint, "mode")
        for name in sorted(self._inside(step)):
            if self._fields[name].reduce is None:
                hint = f"give the field a `reduce`: {_REDUCERS}"
                message = f"every item writes `state.{name}`, which has no `reduce`"
                self._fail(path, message, hint, "map")

    def _loop(self, path: KeyPath, step: LoopNode) -> None:
        if breaks_of(step):
            hint = "leave the loop by `until`, or write from its own value, beside `loop`"
            self._fail(path, "a loop with a `break` has no writes inside", hint, "loop")
        inside = self._inside(step)
        for use in uses_of(step.until, "until"):
            for name in sorted(reads_in(use, self._fields) & inside):
                hint = f"put `state.{name}` into the `result` of the body, and test `{step.item}`"
                message = f"`until` sees `state.{name}` as it was before the loop, which writes it"
                self._fail(path, message, hint, "until")

    def _inside(self, step: BaseNode) -> frozenset[str]:
        nodes = (body for inside in bodies(step) for body, _ in _levels(inside.body, ()))
        written = (written_fields(inner, self._fields) for body in nodes for inner in body.values())
        return frozenset().union(*written)

    # -- levels --------------------------------------------------------------------------------

    def _level(self, nodes: Mapping[str, NodeSpec], places: Mapping[str, KeyPath]) -> None:
        order = StateOrder.of(nodes, self._fields)
        for other, owner in replaced_nodes(nodes).items():
            if other in order.writers:
                hint = f"write from the value of `{owner}`, which is that of `{other}` then"
                message = f"`{other}` runs only in the place of `{owner}`, and cannot write"
                with self._log:
                    self._fail(places[other], message, hint, "writes")
        for one, other in combinations(order.writers, 2):
            with self._log:
                self._writers(order, one, other, places[other])
        for reader in order.readers:
            with self._log:
                self._reader(order, reader, places[reader])
        for name, step in nodes.items():
            for inside in bodies(step):
                for below, paths in _levels(inside.body, (*places[name], *inside.path)):
                    self._level(below, paths)

    def _writers(self, order: StateOrder, one: str, other: str, path: KeyPath) -> None:
        """Check two writers; `one` is declared before `other`."""
        key = "writes" if order.nodes[other].writes else None
        for name in sorted(order.writers[one] & order.writers[other]):
            reducer = self._fields[name].reduce
            if reducer is None and not order.ordered(one, other):
                hint = (
                    f"write `after: {one}` at `{other}`, or give the field a `reduce`: {_REDUCERS}"
                )
                message = f"`{one}` and `{other}` write `state.{name}` in no order"
                self._fail(path, message, hint, key)
            if reducer not in COMMUTATIVE and other in order.ancestors[one]:
                message = (
                    f"`{one}` writes `state.{name}` after `{other}`, but is declared before it"
                )
                self._fail(path, message, f"move `{one}` below `{other}`", key)

    def _reader(self, order: StateOrder, reader: str, path: KeyPath) -> None:
        for writer, written in order.writers.items():
            both = sorted(written & order.readers[reader])
            if both and writer != reader and not order.ordered(writer, reader):
                hint = (
                    f"move `{writer}` above `{reader}` to see what it writes, or write "
                    f"`after: {reader}` at `{writer}`"
                )
                message = f"`{reader}` reads `state.{both[0]}` and `{writer}` writes it in no order"
                self._fail(path, message, hint)

    def _fail(self, path: KeyPath, message: str, hint: str, key: str | None = None) -> NoReturn:
        error: BuildError = JoinError(message, hint=hint)
        self._unit.fail(error, path if key is None else (*path, key), at_key=True)


def _levels(
    body: NodeSpec | Block, path: KeyPath
) -> Iterator[tuple[Mapping[str, NodeSpec], Mapping[str, KeyPath]]]:
    """The level of nodes of one body, with their paths."""
    if isinstance(body, Block):
        yield body.nodes, {name: (*path, "nodes", name) for name in body.nodes}
    else:
        yield {body.kind: body}, {body.kind: path}
