"""A simulation is held to the engine: random programs run for real, in virtual time, beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.virtual_run import Played, play
from tests.profile import examples
from tests.property.oracle import ANSWER
from tests.property.program import Spec, Taste, graph_nodes, programs
from weft.core.events import Event, HumanAsked, NodeFinished
from weft.durability.simulate import Change, recording, simulate
from weft.engine import Run

MANY = examples(60)
WHOLE = Taste(timeouts="none", width=True, resources=("r", "s"), stream=True)
CERTAIN = Taste(
    joins=("all", "best_effort"), timeouts="none", width=True, resources=("r", "s"), stream=True
)
"""Programs of which every node does the same whatever the slots are."""


def real(program: Sequence[Spec], **options: Any) -> tuple[Played, list[Event]]:
    """Run `program`, with somebody who answers every question at once, and keep its events."""
    runs: list[Run] = []
    events: list[Event] = []

    def answer(event: Event) -> None:
        if isinstance(event, HumanAsked):
            runs[0].answer(event.node, ANSWER)

    listeners = [answer, events.append]
    at = {0.0: runs.append}
    return play(*graph_nodes(program), at=at, listeners=listeners, **options), events


def ends(events: Sequence[Event]) -> dict[str, float]:
    return {
        str(event.node): round(event.at_s, 6) for event in events if isinstance(event, NodeFinished)
    }


@MANY
@given(
    programs(WHOLE),
    st.none() | st.integers(1, 4),
    st.dictionaries(st.sampled_from(["r", "s"]), st.integers(1, 3)),
)
def test_unchanged_it_repeats_the_run(
    program: tuple[Spec, ...], slots: int | None, limits: dict[str, int]
) -> None:
    played, events = real(program, max_concurrency=slots, limits=limits)
    again: list[Event] = []
    predicted = simulate(recording(events), Change(), listeners=[again.append])
    assert predicted.wall_s == pytest.approx(played.result.wall_s, abs=1e-6)
    statuses = {name: outcome.status for name, outcome in played.by_node.items()}
    assert {
        str(event.node): event.outcome.status for event in again if isinstance(event, NodeFinished)
    } == statuses
    assert ends(again) == pytest.approx(ends(events), abs=1e-5)


@MANY
@given(
    programs(CERTAIN),
    st.tuples(st.none() | st.integers(1, 4), st.none() | st.integers(1, 4)),
    st.integers(1, 3),
)
def test_with_other_slots_it_foretells_the_run(
    program: tuple[Spec, ...], slots: tuple[int | None, int | None], of_r: int
) -> None:
    before, after = slots
    _, events = real(program, max_concurrency=before, limits={"r": 2})
    change = Change(workers=after or 0, limits={"r": of_r})
    again: list[Event] = []
    predicted = simulate(recording(events), change, listeners=[again.append])
    played, truth = real(program, max_concurrency=after, limits={"r": of_r})
    assert predicted.wall_s == pytest.approx(played.result.wall_s, abs=1e-6)
    assert ends(again) == pytest.approx(ends(truth), abs=1e-5)
