"""Requests that once froze a server, each with the command of the server that it is sent to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["gateway", "mcp", "ui"]
Json = dict[str, Any]
_BAD_PATTERN = "^(a+)+$"
_BAD_TEXT = "a" * 40 + "!"
ASK = "approve"


@dataclass(frozen=True, slots=True)
class Attack:
    """`body` makes what is posted to `path`. `local`: the server has the embedded model.

    `statuses` are those that the server may answer with; `clients` send it at the same time.
    """

    name: str
    kind: Kind
    body: Callable[[], Json]
    path: str = "/v1/chat/completions"
    statuses: tuple[int, ...] = (400,)
    local: bool = False
    clients: int = 1
    headers: Mapping[str, str] = field(default_factory=dict)


def _chat(model: str, content: object = "hi", **fields: Any) -> Json:
    return {"model": model, "messages": [{"role": "user", "content": content}], **fields}


def _format(schema: Json) -> Json:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


def _echoed(value: object, schema: Json) -> Json:
    """The model behind the gateway answers with what it is sent."""
    return _chat("echo", json.dumps(value), response_format=_format(schema))


def _doubling(levels: int) -> Json:
    parts = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**parts, f"d{levels}": {"type": "string"}}}


def _branching() -> Json:
    branch = {"properties": {"a": {"$ref": "#"}}}
    own = {"type": "object", "properties": {"b": {"type": "string"}}}
    return {**own, "anyOf": [branch, branch]}


def _nested(levels: int) -> Json:
    value: Json = {"b": 1}
    for _ in range(levels):
        value = {"a": value}
    return value


def _wide(count: int) -> Json:
    names = [f"p{i}" for i in range(count)]
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}}


def _tools() -> list[Json]:
    return [
        {"type": "function", "function": {"name": f"t{i}", "parameters": _wide(40)}}
        for i in range(200)
    ]


def _inputs(**inputs: Any) -> Json:
    return _chat("victim", inputs=inputs)


def _mcp_call(**arguments: Any) -> Json:
    params = {"name": "victim", "arguments": {"question": "hi", **arguments}}
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}


def _answer() -> Json:
    return {"kind": "answer", "node": ASK, "question": -1, "value": _BAD_TEXT}


_DOZEN = 12
_MANY = [{"role": "user", "content": "x"}] * 100_000
_REFUSED = 502  # what the model answers does not fit

ATTACKS = (
    Attack("none", "gateway", lambda: _chat("echo"), statuses=(200,)),
    Attack(
        "pattern",
        "gateway",
        lambda: _echoed(_BAD_TEXT, {"type": "string", "pattern": _BAD_PATTERN}),
        statuses=(_REFUSED,),
    ),
    Attack("allOf, 18 levels", "gateway", lambda: _echoed("x", _doubling(18))),
    Attack(
        "recursive anyOf", "gateway", lambda: _echoed(_nested(40), _branching()), statuses=(502,)
    ),
    Attack("pattern of an input", "gateway", lambda: _inputs(code=_BAD_TEXT)),
    Attack("4,000 properties", "gateway", lambda: _echoed({}, _wide(4_000)), statuses=(200, 400)),
    Attack("100,000 messages", "gateway", lambda: {"model": "echo", "messages": _MANY}),
    Attack("$ref to itself", "gateway", lambda: _echoed("x", {"$ref": "#"})),
    Attack("200 tools", "gateway", lambda: _chat("echo", tools=_tools()), statuses=(200, 502)),
    Attack("190,000 values", "gateway", lambda: _inputs(rows=[0] * 190_000), statuses=(200,)),
    Attack(
        "12 clients: chats of 4 MB to a workflow",
        "gateway",
        lambda: _chat("victim", "p " * (2 * 2**20 - 300)),
        statuses=(200,),
        clients=_DOZEN,
    ),
    Attack(
        "12 clients: chats of 4 MB to a model",
        "gateway",
        lambda: _chat("echo", "p " * (2 * 2**20 - 300)),
        statuses=(200, 502),
        clients=_DOZEN,
    ),
    Attack(
        "12 clients: 4,000 properties",
        "gateway",
        lambda: _echoed({}, _wide(4_000)),
        statuses=(200,),
        clients=_DOZEN,
    ),
    Attack(
        "12 clients: 39,990 messages",
        "gateway",
        lambda: {"model": "echo", "messages": _MANY[:39_990]},
        clients=_DOZEN,
    ),
    Attack("prompt of 3.8 MB", "gateway", lambda: _chat("tiny", "word " * 760_000), local=True),
    Attack("prompt of 500 kB", "gateway", lambda: _chat("tiny", "word " * 100_000), local=True),
    Attack(
        "prompt of 3.8 MB in a workflow",
        "gateway",
        lambda: _chat("victim-local", "word " * 760_000),
        local=True,
    ),
    Attack("pattern of an input (MCP)", "mcp", lambda: _mcp_call(code=_BAD_TEXT), "/mcp", (200,)),
    Attack("190,000 values (MCP)", "mcp", lambda: _mcp_call(rows=[0] * 190_000), "/mcp", (200,)),
    Attack("pattern of a question (UI)", "ui", _answer, "/api/letters", (422,)),
)

VICTIM = """
name: victim
inputs:
  question: string
  code: {type: string, pattern: "^(a+)+$", default: aa}
  rows: {type: array, items: {type: integer}, default: []}
  messages: {type: array, items: {type: object}, default: []}
models:
  echo: {use: openai, model: echo, base_url: "UPSTREAM"}
nodes:
  answer: {value: "{{ question | length }}{{ messages | length }}{{ rows | length }}"}
outputs: {answer: "{{ answer }}"}
"""
LOCAL = """
name: victim-local
inputs: {question: string}
models: {tiny: local:smollm2-135m-instruct}
nodes: {answer: {model: tiny, prompt: "{{ question }}", max_tokens: 4}}
outputs: {answer: "{{ answer }}"}
"""
ASKING = """
name: asking
nodes: {NODE: {ask: "Which code?", schema: {type: string, pattern: "^(a+)+$"}}}
outputs: {code: "{{ NODE }}"}
""".replace("NODE", ASK)
