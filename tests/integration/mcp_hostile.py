"""A hostile MCP server on stdin and stdout, made by hand: `mcp_hostile.py MODE TRACE`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODE, TRACE = sys.argv[1], Path(sys.argv[2])
OBJECT = {"type": "object"}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any], result: dict[str, Any]) -> None:
    send({"id": request["id"], "result": result})


def bomb(levels: int) -> dict[str, Any]:
    """A small schema that takes 2 ** levels steps to follow."""
    parts = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**parts, f"d{levels}": {}}}


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return {"type": "object", "properties": {"a": schema}}


def tool(name: Any, schema: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": OBJECT if schema is None else schema, **more}


STRANGE = [
    tool("fine", {"type": "object", "properties": {"a": {"type": "integer"}}}),
    tool("rm -rf"),
    tool("rm_rf"),
    tool("\x1b[2J\x1b[31mred"),
    tool("x" * 1000),
    tool(""),
    tool(42),
    "not even an object",
    tool("fine"),
    tool("no_schema", 7),
    tool("a_list", {"type": "array"}),
    tool("too_deep", deep(100)),
    tool("too_wide", {"type": "object", "properties": {f"p{i}": {} for i in range(20000)}}),
    tool("elsewhere", {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1/x"}}}),
    tool("nowhere", {"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}}),
    tool("no_type", {"type": "object", "properties": {"a": {"type": "strange"}}}),
    tool("no_member", {"type": "object", "properties": [1]}),
    tool("expression", {"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}}),
    tool("bomb", outputSchema=bomb(60)),
    tool("circle", outputSchema={"$ref": "#"}),
    tool("twice", outputSchema={"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}),
    tool("liar", outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}}),
    tool("described", description="\x1b[31mred " + "x" * 100_000),
]


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def raw(piece: str) -> None:
    sys.stdout.write(piece)
    sys.stdout.flush()


def huge_id_last(request: dict[str, Any]) -> None:
    answered = json.dumps({"result": text("x" * 4_000_000)})
    raw(f'{answered[:-1]}, "jsonrpc": "2.0", "id": {request["id"]}}}\n')


def wrong_id(request: dict[str, Any]) -> None:
    send({"id": 10**9, "result": {"content": []}})
    send({"id": None, "error": {"code": 1, "message": "nobody"}})
    answer(request, text("late but right"))


def garbage(request: dict[str, Any]) -> None:
    raw("this is no JSON\n[1, 2]\n{}\n\n\x00\n")
    answer(request, text("after garbage"))


def drip(request: dict[str, Any]) -> None:
    for letter in json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {}}):
        raw(letter)
        time.sleep(0.5)


def noise(_: dict[str, Any]) -> None:
    while True:
        send({"method": "notifications/message", "params": {"level": "info", "data": "x"}})


def endless(_: dict[str, Any]) -> None:
    while True:
        raw("x" * 65536)


def twice(request: dict[str, Any]) -> None:
    value: dict[str, Any] = {}
    for _ in range(40):
        value = {"a": value}
    answer(request, {"content": [], "structuredContent": value})


CALLS: dict[str, Callable[[dict[str, Any]], None]] = {
    "huge": lambda request: answer(request, text("x" * 4_000_000)),
    "huge_id_last": huge_id_last,
    "no_content": lambda request: answer(request, {"what": "is this"}),
    "wrong_id": wrong_id,
    "garbage": garbage,
    "drip": drip,
    "noise": noise,
    "endless": endless,
    "twice": twice,
    "liar": lambda request: answer(
        request, {"content": [], "structuredContent": {"n": "not a number"}}
    ),
}


def call(request: dict[str, Any]) -> None:
    def fine(request: dict[str, Any]) -> None:
        answer(request, {"content": [], "structuredContent": {"n": 1}})

    CALLS.get(request["params"]["name"], fine)(request)


def opening(request: dict[str, Any]) -> dict[str, Any]:
    info = {"name": "hostile", "version": "1"}
    version = request["params"]["protocolVersion"]
    return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}


def listing() -> list[Any]:
    if MODE == "strange":
        return STRANGE
    return [tool(name) for name in (*CALLS, "fine")]


def serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        with TRACE.open("a", encoding="utf-8") as file:
            file.write(f"{method}\n")
        if MODE == "silent" or (MODE == "no_listing" and method == "tools/list"):
            continue
        if method == "initialize":
            answer(request, opening(request))
        elif method == "tools/list" and MODE == "endless_pages":
            answer(request, {"tools": [], "nextCursor": "again"})
        elif method == "tools/list":
            answer(request, {"tools": listing()})
        elif method == "tools/call":
            call(request)
        elif MODE == "ignores" and method == "server/discover":
            continue
        elif "id" in request:
            error = {"code": -32601, "message": f"no {method}"}
            send({"id": request["id"], "error": error})


MODES: dict[str, Callable[[], None]] = {
    "gone": lambda: sys.exit(7),
    "stubborn": lambda: serve_for_ever(),
}


def serve_for_ever() -> None:
    """Ignore everything that asks a process to end."""
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve()
    while True:
        time.sleep(1)


if __name__ == "__main__":
    with TRACE.open("a", encoding="utf-8") as file:
        file.write(f"pid {os.getpid()}\n")
    MODES.get(MODE, serve)()
