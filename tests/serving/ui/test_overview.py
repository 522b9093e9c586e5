"""Where the time of a run went, what went into it and what came of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serving.ui.scripted import Script, asking_run, finished_run, info, wide_run
from tests.serving.ui.ui_server import house
from weft.engine.analysis.critical_path import bars, critical_path
from weft.testing.journal import MemoryJournal
from weft.workflow.history.run_history import read_history

VALUES = {"topic": "[secret:KEY] and looms", "long": "thread " * 10_000, "all": [1, {"a": None}]}


def values_run(journal: MemoryJournal, value: Any = "of looms") -> Script:
    script = Script(journal, "values", values=VALUES)
    script.begin(info("write"))
    script.start("write")
    script.wait(0.5).end("write", value)
    return script


def test_inputs_are_told_cut_where_they_are_long() -> None:
    journal = MemoryJournal()
    values_run(journal)
    with house(journal) as here:
        found = here.get("/api/values?run=values")
        names = {one["name"]: one for one in found["inputs"]}
        assert names["topic"] == {
            "name": "topic", "text": "[secret:KEY] and looms", "json": False, "cut": None,
        }  # fmt: skip
        assert (len(names["long"]["text"]), names["long"]["cut"]) == (20_000, 70_000)
        assert names["all"]["json"]
        assert (found["outputs"], found["missing"]) == ([], []), "it has not ended"
        saved = here.http.get("/api/value?run=values&of=inputs&name=long")
        assert saved.text == "thread " * 10_000
        assert "attachment" in saved.headers["content-disposition"]
        for query in ("of=inputs&name=none", "of=other&name=long", "name=long", ""):
            assert here.http.get(f"/api/value?run=values&{query}").status_code == 404


def test_outputs_are_told_when_the_run_has_ended() -> None:
    journal = MemoryJournal()
    values_run(journal, {"poem": "\ud800"}).finish()
    with house(journal) as here:
        (one,) = here.get("/api/values?run=values")["outputs"]
        assert (one["name"], one["json"]) == ("write", True)
        assert '"poem": "?"' in one["text"]
        assert '"?"' in here.http.get("/api/value?run=values&of=outputs&name=write").text


@pytest.mark.parametrize("make", [finished_run, asking_run])
def test_the_timing_is_that_of_the_trace(make: Any) -> None:
    journal = MemoryJournal()
    script = make(journal)
    trace = read_history(journal, script.run).trace
    with house(journal) as here:
        found = here.get(f"/api/timing?run={script.run}")
        assert found["path"] == [
            [step.node, step.doing, step.start_s, step.end_s] for step in critical_path(trace)
        ]
        assert found["bars"] == {
            name: [list(bar) for bar in bars(trace, node)] for name, node in trace.nodes.items()
        }
        assert found["speed_up"] == trace.speed_up()


def test_advice_is_told_with_what_it_saves() -> None:
    journal = MemoryJournal()
    script = Script(journal, "chain")
    script.begin(info("a"), info("b", "tool", "a"))
    for node, seconds in (("a", 1.0), ("b", 3.0)):
        script.start(node)
        script.wait(seconds).end(node, node)
    script.finish()
    with house(journal) as here:
        found = here.get("/api/timing?run=chain")
        assert found["advice"] == {"target": "b", "saves_s": 3.0, "fraction": 0.75}
        assert found["speed_up"] is None, "nothing ran beside anything"


def test_the_timing_of_a_large_run_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.serving.ui.overview._MOST_BARS", 50)
    journal = MemoryJournal()
    wide_run(journal, 200)
    with house(journal) as here:
        found = here.get("/api/timing?run=wide-10000")["bars"]
        assert 0 < sum(map(len, found.values())) <= 50
