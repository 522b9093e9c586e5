"""What the page reads: summaries, records a page at a time, texts in full."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.serving.ui.scripted import Script, asking_run, brief_run, finished_run, info
from tests.serving.ui.ui_server import House, house
from weft.testing.journal import MemoryJournal

HUGE = 10_000_000


def all_records(here: House, run: str, limit: int = 7) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    last, more = 0, True
    while more:
        page = here.get(f"/api/records?run={run}&after={last}&limit={limit}")
        assert len(page["records"]) <= limit
        found += page["records"]
        last, more = page["last"], page["more"]
    return found


def test_runs_are_listed_the_latest_first_with_how_they_stand() -> None:
    journal = MemoryJournal()
    finished_run(journal)
    asking_run(journal)
    with house(journal) as here:
        runs = here.get("/api/runs")["runs"]
        assert [(run["run"], run["standing"]) for run in runs] == [
            ("brief-77aa01b2c3", "asking"),
            ("brief-3f2a91c0de", "partial"),
        ]
        assert runs[0]["asking"] == ["review"]
        one = here.get("/api/run?run=brief-77aa01b2c3")
        assert one["summary"] == runs[0]
        assert json.loads(one["inputs"]["text"]) == {"topic": "weaving"}


def test_a_run_that_is_not_there_is_named_with_the_closest() -> None:
    journal = MemoryJournal()
    brief_run(journal)
    with house(journal) as here:
        for path in ("run?", "records?", "details?seqs=1&", "text?seq=1&field=flow&"):
            response = here.http.get(f"/api/{path}run=brief-3f2a91c0dd")
            assert response.status_code == 404
            assert "brief-3f2a91c0de" in response.json()["hint"]


def test_records_come_in_pages_that_leave_nothing_out() -> None:
    journal = MemoryJournal()
    script = finished_run(journal)
    with house(journal) as here:
        found = all_records(here, script.run)
        assert [record["seq"] for record in found] == [*range(1, len(found) + 1)]
        kinds = [type(one.record).__name__ for one in journal.records(script.run)]
        assert [record["event"] for record in found] == kinds
        grew = next(record for record in found if record["event"] == "GraphGrew")
        assert [node["id"] for node in grew["nodes"]] == [f"documents[{i}]" for i in range(3)]
        asked = next(record for record in found if record["event"] == "ModelCalled")
        assert "request" not in asked


def test_names_are_whole_however_deep_a_node_is() -> None:
    journal = MemoryJournal()
    script = Script(journal, "deep")
    deep = "/".join(["part"] * 1_000)
    script.begin(info(deep, "tool", f"{deep}/x", parent=f"{deep}/y"))
    script.end(deep, "done")
    with house(journal) as here:
        start, end = all_records(here, "deep")
        (node,) = start["nodes"]
        names = (node["id"], node["sources"], node["parent"])
        assert names == (deep, [f"{deep}/x"], f"{deep}/y")
        assert end["node"] == deep


@pytest.mark.parametrize("query", ["after=-1", "after=x", "limit=1e9", "after=" + "9" * 30])
def test_numbers_are_numbers(query: str) -> None:
    journal = MemoryJournal()
    script = brief_run(journal)
    with house(journal) as here:
        assert here.http.get(f"/api/records?run={script.run}&{query}").status_code == 400


def test_details_have_prompts_and_are_few() -> None:
    journal = MemoryJournal()
    script = brief_run(journal)
    seq = next(
        one.seq for one in journal.records(script.run) if type(one.record).__name__ == "ModelCalled"
    )
    with house(journal) as here:
        path = f"/api/details?run={script.run}&seqs="
        (record,) = here.get(f"{path}{seq},{10**9},{seq}")["records"]
        assert record["request"]["messages"][1]["content"].startswith("Write a note")
        assert record["request"]["sampling"]["max_tokens"] == 200
        assert here.http.get(path + ",".join(map(str, range(1, 102)))).status_code == 400
        assert here.http.get(f"{path}x").status_code == 400
        assert here.get(f"{path}0")["records"] == []


def test_a_huge_text_is_cut_and_can_be_had_in_full() -> None:
    journal = MemoryJournal()
    script = Script(journal, "huge")
    text = "ab\x1b[2J" * (HUGE // 6)
    script.begin(info("a"))
    script.end("a", text)
    with house(journal) as here:
        page = here.http.get("/api/records?run=huge")
        assert len(page.content) < 5_000
        end = page.json()["records"][1]
        assert end["outcome"]["value"] == {"text": text[:400], "json": False}
        assert end["cut"] == {"outcome.value": len(text)}
        (full,) = here.get("/api/details?run=huge&seqs=2")["records"]
        assert len(full["outcome"]["value"]["text"]) == 20_000
        saved = here.http.get("/api/text?run=huge&seq=2&field=outcome.value")
        assert saved.text == text
        assert saved.headers["content-type"] == "text/plain; charset=utf-8"
        assert saved.headers["content-disposition"] == (
            'attachment; filename="huge-2-outcome.value.txt"'
        )


@pytest.mark.parametrize("field", ["", "x", "outcome.x", "outcome.__class__", "outcome.value.0.9"])
def test_only_fields_can_be_had(field: str) -> None:
    journal = MemoryJournal()
    script = Script(journal, "small")
    script.begin(info("a"))
    script.end("a", ["one"])
    with house(journal) as here:
        assert here.http.get(f"/api/text?run=small&seq=2&field={field}").status_code == 404
        assert here.http.get("/api/text?run=small&seq=9&field=outcome").status_code == 404
        assert here.http.get("/api/text?run=small&seq=2&field=outcome.value.0").text == "one"


def test_names_that_would_break_a_header_or_a_path_do_not() -> None:
    journal = MemoryJournal()
    run = 'a"\r\nset-cookie: x=1; \u202e/../records?'
    script = Script(journal, run)
    script.begin(info("a"))
    script.end("a", "value")
    with house(journal) as here:
        query = {"run": run, "seq": "2", "field": "outcome.value"}
        response = here.http.get("/api/text", params=query)
        assert response.text == "value"
        assert "set-cookie" not in response.headers
        assert response.headers["content-disposition"].count('"') == 2
        assert here.http.get("/api/run", params={"run": run}).json()["run"] == run
        assert here.http.get("/api/run").status_code == 400


def test_half_a_surrogate_pair_does_not_end_the_page() -> None:
    journal = MemoryJournal()
    script = Script(journal, "half")
    script.begin(info("a"))
    script.stream("a", "before \ud83d after")
    script.end("a", {"key": "\udc00"})
    with house(journal) as here:
        assert here.get("/api/records?run=half")["records"][1]["text"] == "before ? after"
        assert "?" in here.http.get("/api/text?run=half&seq=3&field=outcome.value").text
