"""Answers, cancellations, confirmations: what a run finds in its letter box."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.serving.ui.scripted import APPROVAL, Script, asking_run
from tests.serving.ui.ui_server import House, house
from weft.core.ids import NodeId
from weft.core.ports.journal import Letter
from weft.testing.journal import MemoryJournal

GOOD = {"approve": True, "tone": "warm", "copies": 2}


class Box:
    """A run that asks, and the way to it."""

    def __init__(self, here: House, script: Script) -> None:
        self.here = here
        self.script = script
        *_, last = script.journal.records(script.run)
        self.question = last.seq

    def post(self, body: Any, **headers: str) -> httpx2.Response:
        given = {"content-type": "application/json", **headers}
        content = body if isinstance(body, (bytes, str)) else json.dumps(body)
        path = f"/api/letters?run={self.script.run}"
        return self.here.http.post(path, content=content, headers=given)

    def answer(self, value: Any, **changes: Any) -> httpx2.Response:
        body = {"kind": "answer", "node": "review", "question": self.question, "value": value}
        return self.post({**body, **changes})

    @property
    def letters(self) -> list[Letter]:
        return list(self.script.journal.letters(self.script.run))


@pytest.fixture
def box() -> Iterator[Box]:
    journal = MemoryJournal()
    script = asking_run(journal)
    with house(journal) as here:
        yield Box(here, script)


def test_an_answer_that_fits_is_delivered(box: Box) -> None:
    assert box.answer(GOOD).status_code == 202
    assert box.letters == [Letter("answer", NodeId("review"), GOOD)]


@pytest.mark.parametrize(
    "value", [None, True, {}, {**GOOD, "tone": "rude"}, {**GOOD, "copies": 0}, [GOOD]]
)
def test_an_answer_that_does_not_fit_is_refused(box: Box, value: Any) -> None:
    response = box.answer(value)
    assert response.status_code == 422
    assert response.json()["message"].startswith("the answer does not fit")
    assert box.letters == []


@pytest.mark.parametrize(
    "changes", [{"question": 1}, {"question": 10**9}, {"node": "report"}, {"node": None}]
)
def test_an_answer_to_what_nobody_asks_is_refused(box: Box, changes: dict[str, Any]) -> None:
    assert box.answer(GOOD, **changes).status_code == 409
    assert box.letters == []


def test_a_run_and_a_node_are_cancelled(box: Box) -> None:
    assert box.post({"kind": "cancel", "node": None}).status_code == 202
    assert box.post({"kind": "cancel", "node": "notes[1]", "value": "late"}).status_code == 202
    assert box.letters == [
        Letter("cancel", None, "cancelled in the page"),
        Letter("cancel", NodeId("notes[1]"), "late"),
    ]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 400),
        ("{", 400),
        ("[]", 400),
        ("[" * 100_000, 400),
        ({}, 400),
        ({"kind": "prune"}, 400),
        ({"kind": "cancel", "node": 7}, 400),
        ({"kind": "cancel", "node": "x" * 5_000}, 400),
        ({"kind": "confirm", "node": "report", "value": "perhaps"}, 400),
        ({"kind": "confirm", "node": None, "call": 1, "value": "done"}, 400),
        ({"kind": "confirm", "node": "report", "value": "done"}, 400),
        ({"kind": "confirm", "node": "report", "call": True, "value": "done"}, 400),
        ({"kind": "confirm", "node": "report", "call": 1, "value": "perhaps"}, 400),
        ({"kind": "confirm", "node": "report", "call": 1, "value": ["done"]}, 400),
        ({"kind": "confirm", "node": "report", "call": 1, "value": "repeat", "returned": 1}, 400),
        ({"kind": "confirm", "node": "report", "call": 1, "value": "done"}, 409),
        ({"kind": "answer", "node": "review", "value": True}, 400),
        ({"kind": "answer", "node": "review", "question": True, "value": True}, 400),
        (b"\xff\xfe", 400),
        ({"kind": "cancel", "node": None, "value": "x" * 300_000}, 413),
    ],
)
def test_what_is_no_letter_is_refused(box: Box, body: Any, status: int) -> None:
    assert box.post(body).status_code == status
    assert box.letters == []


def test_a_run_that_has_ended_is_not_cancelled(box: Box) -> None:
    box.script.finish("cancelled")
    for node in (None, "review"):
        refused = box.post({"kind": "cancel", "node": node})
        assert refused.status_code == 409
        assert refused.json()["message"] == "the run has ended"
    assert box.letters == []


def test_forms_of_other_pages_cannot_send_letters(box: Box) -> None:
    """What a form may send without being asked first is never `application/json`."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        letter = {"kind": "cancel", "node": None}
        assert box.post(letter, **{"content-type": kind}).status_code == 415
    path = f"/api/letters?run={box.script.run}"
    assert box.here.stranger.post(path, json={"kind": "cancel"}).status_code == 401
    assert box.here.http.get(path).status_code == 404
    assert box.letters == []


def test_a_schema_that_refers_elsewhere_asks_no_other_server(box: Box) -> None:
    script = Script(box.script.journal, "elsewhere")
    script.ask("ask", "?", {"$ref": "http://127.0.0.1:9/schema.json"})
    path = "/api/letters?run=elsewhere"
    body = {"kind": "answer", "node": "ask", "question": 1, "value": 1}
    assert box.here.http.post(path, json=body).status_code == 422


def test_the_schema_of_the_question_is_sent_in_full(box: Box) -> None:
    path = f"/api/details?run={box.script.run}&seqs={box.question}"
    (record,) = box.here.get(path)["records"]
    assert json.loads(record["schema"]["text"]) == APPROVAL
