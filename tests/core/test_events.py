from __future__ import annotations

import dataclasses
import json
import typing
from typing import Any

import pytest

from weft.core import events
from weft.core.errors import NodeTimeout
from weft.core.events import (
    BreakerChanged,
    BudgetReached,
    CacheMissed,
    Event,
    GraphGrew,
    HumanAnswered,
    HumanAsked,
    JoinDecided,
    NodeDecoded,
    NodeDenoised,
    NodeFinished,
    NodeInfo,
    NodeLogged,
    NodeRepairing,
    NodeRerouted,
    NodeRetrying,
    NodeSpent,
    NodeStarted,
    NodeStreamed,
    NodeWaiting,
    Outcome,
    RunFinished,
    RunMeasured,
    RunResumed,
    RunStarted,
    to_json,
)
from weft.core.ids import NodeId, RunId
from weft.core.values import Denoised, Speculated, Usage

A = NodeId("a")
INFO = NodeInfo(A, "tool", (NodeId("b"),), "model", None)
FAILED = NodeTimeout("took 3 s", hint="raise it").failure()
SPENT = Usage(1, 2, 0, 1, money=0.5)
SAMPLES: list[Event] = [
    RunStarted(RunId("r"), "flow", "2026-01-01T00:00:00Z", (INFO,), {"model": 4}),
    RunResumed(RunId("r"), 2, "2026-01-01T00:01:00Z", 0.05),
    GraphGrew(A, (INFO,), 0.1),
    NodeStarted(A, 1, 0.2, "d1"),
    CacheMissed(A, "0f" * 32, 0.22),
    JoinDecided(A, (NodeId("b"),), 0.25),
    NodeWaiting(A, 0.3),
    NodeStreamed(A, "teñt\u2028", 2, 0.4),
    NodeLogged(A, "line\nline", 0.5),
    NodeSpent(A, SPENT, 0.6),
    NodeDecoded(A, Speculated("lookup", 8, 5, 3, (3, 2), (2, 2)), 0.65),
    NodeDenoised(A, Denoised("threshold", 4, 12, by_kind=(("denoise", 4),)), 0.66),
    NodeRepairing(A, 1, FAILED, 0.68),
    NodeRetrying(A, 1, 0.5, FAILED, 0.7),
    NodeRerouted(A, NodeId("b"), FAILED, 0.8),
    HumanAsked(A, "ok?", {"type": "boolean"}, 0.9),
    HumanAnswered(A, 1.0),
    BreakerChanged(A, "tool", "search", "open", 1.05, "flow", "2026-01-01", "5 calls failed"),
    BudgetReached(None, "all spent", True, 1.1),
    NodeFinished(A, Outcome("failed", None, FAILED, 2), 1.2),
    RunMeasured(0.5, 0.1, 2, None, {"a": (2, 0.01)}, {"a": 0.2}, 1.25),
    RunFinished("partial", SPENT, ("a failed",), 1.3, (A,)),
]


def test_the_samples_cover_the_union() -> None:
    assert {type(sample) for sample in SAMPLES} == set(typing.get_args(Event))


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: type(event).__name__)
def test_every_event_is_one_line_of_json(event: Event) -> None:
    line = to_json(event)
    assert "\n" not in line
    read = json.loads(line)
    assert read.pop("event") == type(event).__name__
    assert read == json.loads(json.dumps(dataclasses.asdict(event)))


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: type(event).__name__)
def test_events_cannot_be_changed(event: Event) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.at_s = 9  # type: ignore[misc]


class Odd:
    def __repr__(self) -> str:
        return "<odd>"


class Modelled:
    def model_dump(self, mode: str) -> dict[str, str]:
        return {"mode": mode}


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Odd(), "<odd>"),
        (Modelled(), {"mode": "json"}),
        ({"k": (1, Odd())}, {"k": [1, "<odd>"]}),
        ({7}, [7]),
        (Outcome("succeeded", {1.5}), None),
        (b"raw", "b'raw'"),
    ],
)
def test_values_that_json_lacks_become_what_it_has(value: Any, written: Any) -> None:
    read = json.loads(to_json(NodeFinished(A, Outcome("succeeded", value), 0.0)))
    found = read["outcome"]["value"]
    if written is None:
        assert found["value"] == [1.5]
    else:
        assert found == written


def test_a_type_is_a_value_too() -> None:
    assert events.jsonable(Outcome) == repr(Outcome)
