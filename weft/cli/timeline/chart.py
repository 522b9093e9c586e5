"""The run as rows and bars, in the short keys that the timeline page reads."""

from __future__ import annotations

import json
from collections.abc import Iterator

from weft.cli.rows import children_of
from weft.cli.speech import Said, Speech
from weft.cli.text import clean
from weft.cli.values import Json, plain
from weft.core.ids import NodeId
from weft.engine.critical import critical_path, released_by
from weft.engine.trace import NodeTrace, Phase, Trace

_MANY_NODES = 2_000
_MOST_SOURCES = 12


def chart(trace: Trace, speech: Speech) -> dict[str, Json]:
    """Rows nested by scope in declared order, the critical path over them, and the run's figures.

    Texts are clipped, shorter in a large run: the page stays small enough to open.
    """
    nodes = list(_nested(trace))
    places = {node.info.id: place for place, (node, _) in enumerate(nodes)}
    width = 1_200 if len(nodes) <= _MANY_NODES else 160
    usage = trace.usage
    return {
        "flow": clean(trace.flow),
        "status": trace.status or "unfinished",
        "reasons": [_clip(reason, width) for reason in trace.reasons[:20]],
        "wall": _ms(trace.wall_s),
        "busy": _ms(trace.all_busy_s()),
        "speedup": trace.speed_up(),
        "most": trace.max_running,
        "tokens": [usage.prompt_tokens, usage.completion_tokens],
        "money": usage.money,
        "limits": dict(trace.limits),
        "nodes": [_row(trace, node, depth, places, speech, width) for node, depth in nodes],
        "path": [
            [places[s.node], s.doing, _ms(s.start_s), _ms(s.end_s)] for s in critical_path(trace)
        ],
    }


def _nested(trace: Trace) -> Iterator[tuple[NodeTrace, int]]:
    """All nodes with their depth, each below the node that appended it."""
    children = children_of(trace)
    waiting = [(node, 0) for node in reversed(children[None])]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in reversed(children[node.info.id])]


def _row(
    trace: Trace,
    node: NodeTrace,
    depth: int,
    places: dict[NodeId, int],
    speech: Speech,
    width: int,
) -> dict[str, Json]:
    parent, outcome = node.info.parent, node.outcome
    row: dict[str, Json] = {
        "id": clean(node.info.id),
        "kind": clean(node.info.kind),
        "depth": depth,
        "parent": places.get(parent, -1) if parent is not None else -1,
        "children": node.children,
        "status": "unfinished" if outcome is None else outcome.status,
        "attempts": node.attempts,
        "bars": _bars(trace, node),
        "end": None if node.finished_s is None else _ms(node.finished_s),
    }
    if outcome is not None:
        row["via"] = outcome.via
        if outcome.failure is not None:
            row["failure"] = _clip(str(outcome.failure), width)
        if outcome.value is not None and not node.children:
            row["value"] = _clip(_text(outcome.value), width)
    if node.info.sources:
        row["sources"] = [clean(source) for source in node.info.sources[:_MOST_SOURCES]]
    if node.info.resource is not None:
        row["resource"] = clean(node.info.resource)
    if node.usage.tokens:
        row["tokens"] = [node.usage.prompt_tokens, node.usage.completion_tokens]
    return row | _said(speech.of.get(node.info.id), width)


def _said(said: Said | None, width: int) -> dict[str, Json]:
    if said is None:
        return {}
    found: dict[str, Json] = {}
    if said.head:
        found["text"] = _clip(said.head, width)
    if said.logs:
        found["logs"] = [_clip(line, width) for line in said.logs]
    return found


def _bars(trace: Trace, node: NodeTrace) -> list[Json]:
    """What the node did: [doing, from, to] in milliseconds, waiting for slots included.

    "failed" is work of an attempt that came to nothing.
    """
    began = node.phases[0].begun if node.phases else node.ended
    if began is None:
        return []
    ready, _ = released_by(trace, node, began)
    pieces: list[tuple[str, float, float]] = []
    if node.phases:
        pieces.append(("slot", ready.at_s, began.at_s))
    for phase in node.phases:
        pieces += _pieces(trace, node, phase)
    return [[doing, _ms(start), _ms(end)] for doing, start, end in pieces if end > start]


def _pieces(trace: Trace, node: NodeTrace, phase: Phase) -> list[tuple[str, float, float]]:
    until = phase.ended or trace.now
    start_s, end_s = phase.begun.at_s, until.at_s
    work = "failed" if phase.failed else "work"
    if phase.doing == "delay":
        due_s = min(phase.until_s, end_s)
        return [("delay", start_s, due_s), ("slot", due_s, end_s)]
    if phase.doing == "children":
        child = trace.waited_for(node, phase, until)
        resumed_s = end_s if child is None or child.ended is None else child.ended.at_s
        return [("children", start_s, resumed_s), (work, resumed_s, end_s)]
    return [(work if phase.doing == "work" else phase.doing, start_s, end_s)]


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)


def _clip(text: str, width: int) -> str:
    text = clean(text[: width * 4])
    return text if len(text) <= width else text[: width - 1] + "…"
