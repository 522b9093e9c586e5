"""The systems by name: plain, weft, and weft with mechanisms taken away or alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from evals.serving.replay import System
from evals.serving.server import MODEL, Server
from evals.serving.systems.on_weft import Knowledge, OnWeft
from evals.serving.systems.plain import Plain
from weft.serving.fleet import Fleet, FleetOptions
from weft.serving.openai import OpenAIModel

CONNECTIONS = 512
"""More than there are ever requests: no system waits for a connection."""

IN_FLIGHT = 16
"""Requests at once on one server: fewer keep the order effective, more use its batching.

Which server bears how many is a matter of its hardware; see the case `concurrency` of `--knobs`.
"""

_NEVER = 10**9
_EVERYTHING = Knowledge()


@dataclass(frozen=True, slots=True)
class Weft:
    """A configuration of weft's client."""

    options: FleetOptions
    knowledge: Knowledge = _EVERYTHING

    def __call__(self, server: Server) -> System:
        return OnWeft(Fleet([client(server, priority=True)], self.options), self.knowledge)


def client(server: Server, *, priority: bool = False) -> OpenAIModel:
    """A client of `server`, the same for all systems."""
    return OpenAIModel(server.api, MODEL, connections=CONNECTIONS, priority=priority)


_ALL = FleetOptions(in_flight=IN_FLIGHT)
_NONE = FleetOptions.plain()
_NOTHING = Knowledge(cancel=False, warm=False)

Make = Callable[[Server], System]

MAIN: Mapping[str, Make] = {
    "plain": lambda server: Plain(client(server), cancel=False),
    "plain_cancel": lambda server: Plain(client(server), cancel=True),
    "weft": Weft(_ALL),
}
WITHOUT: Mapping[str, Make] = {
    "weft_no_order": Weft(replace(_ALL, order="arrival")),
    "weft_no_bound": Weft(replace(_ALL, in_flight=None)),
    "weft_no_cancel": Weft(_ALL, Knowledge(cancel=False)),
    "weft_no_prefix": Weft(replace(_ALL, min_shared_chars=_NEVER)),
    "weft_no_warm": Weft(_ALL, Knowledge(warm=False)),
    "weft_no_lengths": Weft(_ALL, Knowledge(lengths=False)),
}
ALONE: Mapping[str, Make] = {
    "only_order": Weft(replace(_NONE, order="program"), _NOTHING),
    "only_bound": Weft(replace(_NONE, in_flight=IN_FLIGHT), _NOTHING),
    "only_order_bound": Weft(replace(_NONE, order="program", in_flight=IN_FLIGHT), _NOTHING),
    "only_cancel": Weft(_NONE, Knowledge(cancel=True, warm=False)),
    "only_prefix": Weft(replace(_NONE, warm_prefix=True), _NOTHING),
    "only_warm": Weft(
        replace(_NONE, warm_prefix=True, min_shared_chars=_NEVER), replace(_NOTHING, warm=True)
    ),
}
SYSTEMS: Mapping[str, Make] = {**MAIN, **WITHOUT, **ALONE}
