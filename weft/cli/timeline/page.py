"""The timeline page: rows and bars as data in one HTML file.

Text of models and tools is data in it, never markup. The page makes no requests, and its policy
allows only its own script.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from importlib.resources import files

from weft.cli.reports.rows import children_of
from weft.cli.run.listeners import NodeOutput, NodeOutputLog
from weft.cli.text import Json, clean, plain
from weft.core.ids import NodeId
from weft.engine.analysis.critical_path import bars, critical_path
from weft.engine.analysis.trace import NodeTrace, Trace

_MANY_NODES = 2_000
_MOST_SOURCES = 12


def chart(trace: Trace, node_outputs: NodeOutputLog) -> dict[str, Json]:
    """Rows nested by scope in declared order, the critical path, and the run's figures.

    Texts are clipped, more in a large run, to keep the page small.
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
        "nodes": [_row(trace, node, depth, places, node_outputs, width) for node, depth in nodes],
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
    node_outputs: NodeOutputLog,
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
        "bars": [[b.doing, _ms(b.start_s), _ms(b.end_s)] for b in bars(trace, node)],
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
    return row | _output(node_outputs.of.get(node.info.id), width)


def _output(output: NodeOutput | None, width: int) -> dict[str, Json]:
    if output is None:
        return {}
    fields: dict[str, Json] = {}
    if output.head:
        fields["text"] = _clip(output.head, width)
    if output.logs:
        fields["logs"] = [_clip(line, width) for line in output.logs]
    return fields


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)


def _clip(text: str, width: int) -> str:
    text = clean(text[: width * 4])
    return text if len(text) <= width else text[: width - 1] + "…"


_MARK = re.compile(r"@@(\w+)@@")


def page(trace: Trace, node_outputs: NodeOutputLog) -> str:
    """The HTML text of the page, for a run that has ended or was cut short."""
    scripts = (_strokes(), *map(_asset, ("shape.js", "paint.js", "hands.js")))
    script = '(() => {\n"use strict";\n' + "\n".join(scripts) + "})();"
    style = _asset("page.css")
    pieces = {
        "title": html.escape(clean(trace.flow) or "run"),
        "policy": "; ".join(
            (
                "default-src 'none'",
                f"script-src '{_digest(script)}'",
                f"style-src '{_digest(style)}'",
                "base-uri 'none'",
                "form-action 'none'",
            )
        ),
        "style": style,
        "script": script,
        "data": _embedded(chart(trace, node_outputs)),
    }
    return _MARK.sub(lambda mark: pieces[mark[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return (files("weft.cli.timeline") / name).read_text(encoding="utf-8")


def _strokes() -> str:
    """The drawing code shared with the page of runs: a module there, plain functions here."""
    strokes = files("weft") / "serving" / "ui" / "assets" / "outline" / "strokes.js"
    return strokes.read_text(encoding="utf-8").replace("export ", "")


def _digest(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embedded(data: object) -> str:
    """JSON that can neither end its script element nor open a comment in it."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
