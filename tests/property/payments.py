"""Random workflows that pay orders, in every way in which a node can be tried again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

import weft
from tests.property.bank import ENDS, End
from weft.core.errors import ModelUnavailable
from weft.core.ports import ModelRequest
from weft.core.values import ToolCall
from weft.testing import Reply

HEAD: Final = {
    "name": "payments",
    "inputs": {"question": {"type": "string", "default": "pay"}},
    "models": {"small": "local:smollm2-135m-instruct"},
    "tools": {name: f"tests.property.bank:{name}" for name in ("visa", "cash", "wire")},
}
_ORDER = re.compile(r"o\d+(\.\d+)?")


@dataclass(frozen=True)
class Payments:
    """A workflow, how the calls for each order end, and what the model does.

    `fickle`: the model begins with another tool each time; `faults`: so many of its answers break.
    """

    nodes: Mapping[str, Any]
    ends: Mapping[str, list[End]]
    fickle: bool
    faults: int

    @property
    def flow(self) -> weft.Flow:
        """The workflow."""
        names = [name for name in self.nodes if not name.startswith("f")]
        outputs = {"answer": [f"{{{{ {name} }}}}" for name in names]}
        return weft.loads(json.dumps({**HEAD, "nodes": self.nodes, "outputs": outputs}))

    def script(self) -> Callable[[ModelRequest], Reply]:
        """A model that pays the order of its prompt, by the next tool where one has failed."""
        asked, faults = 0, self.faults

        def reply(request: ModelRequest) -> Reply:
            nonlocal asked, faults
            asked += 1
            told = [message for message in request.messages if message.role == "tool"]
            if told and faults:
                faults -= 1
                return Reply(error=ModelUnavailable("the model is away"))
            if any(" paid o" in message.content for message in told):
                return Reply("it is paid")
            found = _ORDER.search(request.messages[-1 - 2 * len(told)].content)
            assert found is not None
            begin = asked if self.fickle else len(told)
            tool = ("visa", "cash", "wire")[begin % 3]
            call = ToolCall(f"c{asked}", tool, json.dumps({"order": found.group()}))
            return Reply("", (call,))

        return reply


@st.composite
def payments(draw: st.DrawFn) -> Payments:
    """One to three nodes at the top, each of which pays orders of its own."""
    nodes: dict[str, Any] = {}
    faults = draw(st.sampled_from([0, 0, 2, 3, 6]))  # a turn is tried three times
    for number in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(_KINDS))
        nodes |= kind(draw, number, faults)
    text = json.dumps(nodes)
    orders = sorted({found.group() for found in _ORDER.finditer(text)})
    orders += [f"{order}.{index}" for order in orders for index in range(3)]
    some = st.lists(st.sampled_from(ENDS), max_size=3)
    ends = {order: draw(some) for order in orders}
    return Payments(nodes, ends, draw(st.booleans()), faults)


Nodes = dict[str, Any]


def _policy(draw: st.DrawFn, *, stands_in: bool = True) -> Nodes:
    found: Nodes = {}
    if draw(st.booleans()):
        found["timeout"] = draw(st.sampled_from(["100ms", "1s"]))
    if draw(st.booleans()):
        delay = draw(st.sampled_from([0, 0.2]))
        found["retry"] = {"attempts": draw(st.integers(2, 3)), "delay": delay}
    if stands_in and draw(st.booleans()):
        found["default"] = None
    elif draw(st.booleans()):
        found["on_failure"] = "skip"
    return found


def _call(draw: st.DrawFn, order: str) -> Nodes:
    return {"tool": draw(st.sampled_from(["visa", "cash"])), "with": {"order": order}}


def _tool(draw: st.DrawFn, number: int, _: int) -> Nodes:
    order = f"o{number}"
    node = {**_call(draw, order), **_policy(draw)}
    nodes = {f"n{number}": node}
    if draw(st.booleans()):
        node["alternatives"] = ["wire", "visa"][: draw(st.integers(1, 2))]
    if draw(st.booleans()):
        node["fallback"] = f"f{number}"
        nodes[f"f{number}"] = {**_call(draw, order), **_policy(draw)}
    return nodes


def _map(draw: st.DrawFn, number: int, _: int) -> Nodes:
    items = draw(st.integers(1, 3))
    body = {**_call(draw, f"o{number}.{{{{ it }}}}"), **_policy(draw)}
    node: Nodes = {"map": list(range(items)), "as": "it", "do": body, **_policy(draw)}
    mode = draw(st.sampled_from(["all", "any", "quorum", "best_effort", "first_valid"]))
    node["mode"] = mode
    if mode == "quorum":
        node["k"] = items
    if mode == "first_valid":
        node["valid"] = "{{ value is not none }}"
    if draw(st.booleans()):
        node["width"] = draw(st.integers(1, 2))
    nodes = {f"n{number}": node}
    if items == 1 and draw(st.booleans()):
        node["fallback"] = f"f{number}"
        nodes[f"f{number}"] = _call(draw, f"o{number}.0")
    return nodes


def _loop(draw: st.DrawFn, number: int, _: int) -> Nodes:
    body = {**_call(draw, f"o{number}"), **_policy(draw)}
    return {
        f"n{number}": {
            "loop": body,
            "as": "it",
            "start": None,
            "until": "{{ it is not none }}",
            "max": 3,
            **_policy(draw),
        }
    }


def _race(draw: st.DrawFn, number: int, _: int) -> Nodes:
    ways = {f"m{number}_{way}": _call(draw, f"o{number}.{way}") for way in range(2)}
    for way in ways.values():
        way |= _policy(draw)
    join: Nodes = {"join": list(ways), "mode": draw(st.sampled_from(["any", "all"]))}
    return {**ways, f"n{number}": {**join, "default": None}}


def _agent(draw: st.DrawFn, number: int, faults: int) -> Nodes:
    node: Nodes = {
        "model": "small",
        "prompt": f"pay o{number}",
        "tools": ["visa", "cash", "wire"],
        "agent": {"loop": "parallel-react", "rounds": 4},
        **_policy(draw),
    }
    nodes = {f"n{number}": node}
    if not faults and "timeout" not in node and draw(st.booleans()):
        node["fallback"] = f"f{number}"
        nodes[f"f{number}"] = _call(draw, f"o{number}")
    return nodes


_KINDS: Final = (_tool, _tool, _map, _loop, _race, _agent)
