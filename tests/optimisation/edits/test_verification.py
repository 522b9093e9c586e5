"""Fuse, Parallelise and Hoist claim that no value changes; a recorded run tests it for nothing."""

from __future__ import annotations

import pytest

import weft
from tests.optimisation.edits.flows import TEXT, echo
from weft.core.ids import RunId
from weft.optimisation.edits import Drop, Edit, Fuse, Hoist, Parallelise, Patch, SetPrompt
from weft.optimisation.edits.verification import verify_unchanged
from weft.testing import MemoryJournal
from weft.workflow.history.run_history import RunHistory, read_history

CLAIMS: tuple[tuple[Edit, ...], ...] = (
    (Parallelise(node="rating"),),
    (Hoist(node="notes/intro"),),
    (Parallelise(node="rating"), Fuse(node="short", first="notes")),
    (Parallelise(node="rating"), Fuse(node="short", first="notes"), Hoist(node="short/intro")),
)


def recorded(flow: weft.Flow) -> RunHistory:
    journal, model = MemoryJournal(), echo()
    flow.run_sync(topic="rivers", models={"small": model}, journal=journal, run="r")
    assert len(model.requests) == 8
    return read_history(journal, RunId("r"))


@pytest.mark.parametrize("edits", CLAIMS)
def test_a_true_claim_holds_without_a_call(edits: tuple[Edit, ...]) -> None:
    flow = weft.loads(TEXT)
    patch = Patch(edits)
    assert patch.claims_no_change
    found = verify_unchanged(recorded(flow), flow, patch)
    assert found.unchanged, found


@pytest.mark.parametrize("edits", CLAIMS)
def test_it_holds_in_a_run_as_well(edits: tuple[Edit, ...]) -> None:
    flow, model = weft.loads(TEXT), echo()
    before = flow.run_sync(topic="seas", models={"small": model})
    calls = len(model.requests)
    after = Patch(edits).apply(flow).run_sync(topic="seas", models={"small": model})
    assert after.outputs == before.outputs
    assert len(model.requests) - calls <= calls


def test_an_edit_that_changes_a_value_is_found() -> None:
    flow = weft.loads(TEXT)
    history = recorded(flow)
    asked = verify_unchanged(history, flow, Patch((SetPrompt(node="rating", prompt="Now"),)))
    assert asked.unknown == ("rating",)
    assert not asked.unchanged
    dropped = verify_unchanged(history, flow, Patch((Drop(node="rating", instead="x"),)))
    assert {each.name for each in dropped.differences} == {"rating"}
    assert not dropped.unknown
