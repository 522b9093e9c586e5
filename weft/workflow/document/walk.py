"""Going through all nodes of a document, those in bodies included, with their paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from weft.workflow.document.nodes import Block, Body, BranchNode, LoopNode, MapNode
from weft.workflow.document.step import Step

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Inside:
    """A body of a node: its path in the node, and the names that exist only in it."""

    path: Path
    body: Body
    bound: tuple[str, ...] = ()


def bodies(step: Step) -> tuple[Inside, ...]:
    """The bodies of a node, in order; none for most kinds."""
    match step:
        case MapNode():
            return (Inside(("do",), step.do, (step.item, "index")),)
        case LoopNode():
            return (Inside(("loop",), step.loop, (step.item, "iteration")),)
        case BranchNode():
            return tuple(Inside(("cases", key), case) for key, case in step.cases.items())
        case _:
            return ()


def walk(nodes: Mapping[str, Step], path: Path = ("nodes",)) -> Iterator[tuple[Path, Step]]:
    """Every node with its path, outer ones before what is inside them."""
    for name, step in nodes.items():
        yield from _walk(step, (*path, name))


def _walk(step: Step, path: Path) -> Iterator[tuple[Path, Step]]:
    yield path, step
    for inside in bodies(step):
        below = (*path, *inside.path)
        if isinstance(inside.body, Block):
            yield from walk(inside.body.nodes, (*below, "nodes"))
        else:
            yield from _walk(inside.body, below)
