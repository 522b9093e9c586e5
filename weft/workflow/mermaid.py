"""A drawing as Mermaid text. Labels are hostile: nothing in them can end a label."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count

from weft.workflow.view import GraphView, ViewNode

_LINES = {
    "data": "-->",
    "after": "-.->",
    "fallback": "-. fallback .->",
    "degrade": "-. degrade .->",
}
_SHAPES = {
    "tool": ("[", "]"),
    "call": ("[", "]"),
    "reduce": ("[/", "/]"),
    "model": ("(", ")"),
    "branch": ("{", "}"),
    "join": ("{{", "}}"),
    "ask": ("[\\", "\\]"),
    "workflow": ("[[", "]]"),
}


def mermaid(view: GraphView) -> str:
    """The graph as a flowchart, one statement a line."""
    return "\n".join(["flowchart TD", *_Chart().level(view, "    ")]) + "\n"


class _Chart:
    """One flowchart; gives every path an identifier of its own."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def level(self, view: GraphView, margin: str) -> Iterator[str]:
        for node in view.nodes:
            yield from self._node(node, margin)
        for edge in view.edges:
            yield f"{margin}{self._id(edge.source)} {_LINES[edge.style]} {self._id(edge.target)}"

    def _node(self, node: ViewNode, margin: str) -> Iterator[str]:
        if node.inside is None and not node.groups:
            left, right = _SHAPES.get(node.kind, ("[", "]"))
            yield f'{margin}{self._id(node.id)}{left}"{_label(node)}"{right}'
            return
        yield f'{margin}subgraph {self._id(node.id)}["{_text(node.label)} ({_text(node.kind)})"]'
        if node.inside is not None:
            yield from self.level(node.inside, margin + "    ")
        for case, group in node.groups:
            yield f'{margin}    subgraph {self._id(f"{node.id}/{case}")}["{_text(case)}"]'
            yield from self.level(group, margin + "        ")
            yield f"{margin}    end"
        yield f"{margin}end"

    def _id(self, path: str) -> str:
        if path not in self._ids:
            readable = "n_" + "".join(c if c.isascii() and c.isalnum() else "_" for c in path)
            taken = set(self._ids.values())
            numbered = (f"{readable}_{number}" for number in count(2))
            self._ids[path] = next(
                name for name in chain([readable], numbered) if name not in taken
            )
        return self._ids[path]


def _label(node: ViewNode) -> str:
    kind = _text(node.kind)
    if node.alternatives:
        kind += f"<br/>or {', '.join(map(_text, node.alternatives))}"
    return kind if node.label == node.kind else f"{_text(node.label)}<br/>{kind}"


def _text(text: str) -> str:
    shown = text if len(text) <= 60 else f"{text[:60]}..."
    return "".join(c if c.isalnum() or c in " _-." else f"#{ord(c)};" for c in shown)
