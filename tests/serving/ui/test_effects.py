"""Calls that must not be repeated: which the page is told of, and which words on them are taken."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tests.serving.ui.scripted import Script, info
from tests.serving.ui.ui_server import House, house
from weft.core.errors import Failure
from weft.core.ids import NodeId
from weft.core.ports.journal import Letter
from weft.testing.journal import MemoryJournal

BROKEN = Failure("ToolRaised", "TimeoutError: no answer", "tool")


def paying_run(journal: MemoryJournal, run: str = "pay-0a1b2c3d4e") -> Script:
    """Three payments: one known, one that failed on the way, one within which the process died."""
    script = Script(journal, run, "pay")
    script.begin(*(info(name) for name in ("first", "second", "third", "read")))
    for name, amount in (("first", 1), ("second", 2), ("third", 3)):
        script.start(name)
        script.calls_tool(name, "pay", {"amount": amount, "note": "<b>rent</b>"}, "once")
    script.start("read")
    script.calls_tool("read", "look", {}, "pure")
    script.wait(0.5).tool_returns("first", "receipt 1")
    script.end("first", "receipt 1")
    script.tool_returns("second", None, BROKEN)
    script.end("second", None, "failed", BROKEN)
    return script


def told(here: House, script: Script) -> list[dict[str, Any]]:
    found = here.get(f"/api/unsettled?run={script.run}")
    assert found["count"] == len(found["calls"])
    calls: list[dict[str, Any]] = found["calls"]
    return calls


def say(here: House, script: Script, call: int, node: str, **said: Any) -> httpx2.Response:
    body = {"kind": "confirm", "node": node, "call": call, **said}
    return here.http.post(f"/api/letters?run={script.run}", json=body)


def test_the_calls_whose_end_nobody_knows_are_told_in_their_order() -> None:
    journal = MemoryJournal()
    script = paying_run(journal)
    script.claim.release()
    with house(journal) as here:
        second, third = told(here, script)
        assert (second["node"], third["node"]) == ("second", "third")
        assert second["tool"] == "pay"
        arguments = json.loads(second["arguments"]["text"])
        assert arguments == {"amount": 2, "note": "<b>rent</b>"}
        assert second["failure"]["message"] == BROKEN.message
        assert (third["failure"], third["lost"]) == (None, False)


def test_what_only_lost_its_result_is_told_too() -> None:
    journal = MemoryJournal()
    script = Script(journal, "lost")
    script.begin(info("open"))
    script.start("open")
    script.calls_tool("open", "connect", {}, "once")
    script.tool_returns("open", object())
    script.claim.release()
    with house(journal) as here:
        (call,) = told(here, script)
        assert call["lost"]


def test_nothing_is_asked_of_who_may_know_it_soon_or_need_not_know_it() -> None:
    journal = MemoryJournal()
    script = paying_run(journal)
    with house(journal) as here:
        assert told(here, script) == []
        assert say(here, script, 3, "second", value="done").status_code == 409
        script.finish("succeeded")
        assert told(here, script) == []


def test_a_call_that_a_later_attempt_or_part_has_settled_is_not_told() -> None:
    journal = MemoryJournal()
    script = paying_run(journal)
    for name in ("second", "third"):
        script.start(name, 2)
        script.calls_tool(name, "pay", {}, "once", attempt=2)
        script.tool_returns(name, "receipt", attempt=2)
    script.finish("failed")
    with house(journal) as here:
        assert told(here, script) == []


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ({"value": "done", "returned": {"receipt": 2}}, {"said": "done", "value": {"receipt": 2}}),
        ({"value": "done"}, {"said": "done", "value": None}),
        ({"value": "repeat"}, {"said": "repeat", "value": None}),
    ],
)
def test_a_word_on_a_call_is_left_for_who_resumes_the_run(
    said: dict[str, Any], value: dict[str, Any]
) -> None:
    journal = MemoryJournal()
    script = paying_run(journal)
    script.claim.release()
    with house(journal) as here:
        second, _ = told(here, script)
        assert say(here, script, second["seq"], "second", **said).status_code == 202
        left = Letter("confirm", NodeId("second"), {"call": second["seq"], **value})
        assert list(journal.letters(script.run)) == [left]


def test_a_word_on_any_other_call_is_refused() -> None:
    journal = MemoryJournal()
    script = paying_run(journal)
    script.claim.release()
    with house(journal) as here:
        second, third = (call["seq"] for call in told(here, script))
        for call, node in ((second, "third"), (third, "second"), (second - 1, "first"), (1, "x")):
            response = say(here, script, call, node, value="repeat")
            assert response.status_code == 409
            assert "reload" in response.json()["hint"]
        assert list(journal.letters(script.run)) == []


def test_a_word_on_a_call_of_a_run_under_way_is_refused_and_says_when_to_say_it() -> None:
    journal = MemoryJournal()
    script = paying_run(journal)
    script.claim.release()
    with house(journal) as here:
        second, _ = told(here, script)
        claim = journal.claim(script.run)
        response = say(here, script, second["seq"], "second", value="repeat")
        assert response.status_code == 409
        assert "resume the run then" in response.json()["hint"]
        assert list(journal.letters(script.run)) == []
        claim.release()
        assert say(here, script, second["seq"], "second", value="repeat").status_code == 202


def test_long_arguments_come_cut_and_can_be_saved_whole() -> None:
    journal = MemoryJournal()
    script = Script(journal, "long")
    script.begin(info("send"))
    script.start("send")
    script.calls_tool("send", "mail", "x" * 1_000_000, "once")
    script.claim.release()
    with house(journal) as here:
        (call,) = told(here, script)
        assert len(call["arguments"]["text"]) < 10_000
        assert call["cut"] == {"arguments": 1_000_000}


def test_many_calls_are_counted_and_the_first_told() -> None:
    journal = MemoryJournal()
    script = Script(journal, "many")
    script.begin(*(info(f"pay{i}") for i in range(70)))
    for i in range(70):
        script.start(f"pay{i}")
        script.calls_tool(f"pay{i}", "pay", {"amount": i}, "once")
    script.finish("failed")
    with house(journal) as here:
        found = here.get("/api/unsettled?run=many")
        assert (found["count"], len(found["calls"])) == (70, 50)


def test_a_run_that_is_not_there_has_no_calls() -> None:
    with house() as here:
        assert here.http.get("/api/unsettled?run=none").status_code == 404
        assert here.http.get("/api/unsettled").status_code == 400
        assert here.stranger.get("/api/unsettled?run=none").status_code == 401
