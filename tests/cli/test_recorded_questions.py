"""`weft ask` and `weft think` as a person types them: recorded, killed, gone on with, repeated."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import go_into, typed
from tests.cli.test_signals import said
from tests.serving.openai.scripted import EndpointServer, Json, Script, chunk, says
from tests.workflow.history.test_questions import FINISH, PLAN, TOOLS
from weft.core.calls import ModelAnswered
from weft.workflow.history.run_history import RunHistory, read_history
from weft.workflow.runtime.journals import open_journal

WHY = "How many legs has a spider?"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch)
    (tmp_path / "tools.py").write_text(TOOLS)
    return tmp_path


def story() -> RunHistory:
    journal = open_journal()
    try:
        return read_history(journal, journal.runs(limit=1)[0].run)
    finally:
        journal.close()


class Slow:
    """A server whose third sample never comes to an end, until it is told to."""

    def __init__(self) -> None:
        self.seen: dict[Any, int] = {}
        self.stalls = True

    def __call__(self, request: Json) -> Script:
        number = self.seen.setdefault(request["seed"], len(self.seen))
        if number == 2 and self.stalls:
            begun = [chunk({"role": "assistant", "content": ""}), chunk({"content": "Well"})]
            return Script([*begun, chunk(finish="stop")], stall_after=2)
        return says(f"Answer: {(7, 9, 7)[number]}")


def test_a_killed_thought_goes_on_where_it_was(endpoints: EndpointServer, folder: Path) -> None:
    script = Slow()
    endpoint = endpoints.add(script)
    words = ["think", WHY, "--width", "3", "--model", "m", "--base-url", endpoint.base_url]
    process = subprocess.Popen(
        [sys.executable, "-c", "from weft.cli.entry import run; run()", *words, "--run-id", "legs"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(2):
        said(process, " succeeded in ")
    patience = iter(range(6_000))
    while len(endpoint.requests) < 3:
        assert next(patience, None) is not None, "the third was never asked"
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert "legs" in typed("runs").output
    assert "interrupted" in typed("runs").output
    answered = sum(isinstance(call, ModelAnswered) for call in story().calls)
    asked, script.stalls = len(endpoint.requests), False
    assert (answered, asked) == (2, 3)
    result = typed("resume", "legs", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["outputs"] == {"answer": "7"}
    assert len(endpoint.requests) == asked + 1
    again = typed("replay", "legs")
    assert (again.exit_code, "identical" in again.output) == (0, True), again.output
    shown = typed("runs", "show", "legs").output
    assert "answer/samples/2/sample" in shown
    done = typed("resume", "legs")
    assert (done.exit_code, "has succeeded" in done.output) == (0, True)


def test_an_answer_is_shown_compared_simulated_and_carried(
    endpoints: EndpointServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = iter([PLAN, FINISH, PLAN, FINISH])
    monkeypatch.setenv("HOUSE_API_KEY", "sk-very-secret-1234")
    endpoint = endpoints.add(lambda _: says(next(replies)))
    words = ["ask", "How many live in Rome and Berlin?", "--tools", "./tools.py", "--model", "m"]
    words += ["--base-url", endpoint.base_url, "--api-key-env", "HOUSE_API_KEY", "--quiet"]
    words += ["--constrain", "never"]
    for _ in range(2):
        result = typed(*words)
        assert result.exit_code == 0, result.output
        assert "7 million" in result.stdout
    first, second = story().run, typed("runs", "--json").stdout
    assert second.count(first) >= 1
    assert endpoint.headers[0]["authorization"] == "Bearer sk-very-secret-1234"
    assert b"very-secret" not in (folder / "journal.sqlite").read_bytes()
    assert typed("diff", first, first).exit_code == 0
    assert "predicted" in typed("simulate", first, "--workers", "1").output
    assert typed("runs", "export", first, "ask.cassette").exit_code == 0
    (folder / "tools.py").unlink()
    monkeypatch.delenv("HOUSE_API_KEY")
    repeated = typed("replay", "ask.cassette")
    assert (repeated.exit_code, "identical" in repeated.output) == (0, True), repeated.output
    assert len(endpoint.requests) == 4


def test_nothing_is_recorded_where_nobody_wants_it(endpoints: EndpointServer, folder: Path) -> None:
    endpoint = endpoints.add(lambda _: says("Answer: 8"))
    words = ["think", WHY, "--model", "m", "--base-url", endpoint.base_url, "-q", "--width", "2"]
    assert typed(*words, "--durability", "none").exit_code == 0
    assert not (folder / "journal.sqlite").exists()
    assert typed(*words, "--journal", "other.sqlite", "--run-id", "mine").exit_code == 0
    assert (folder / "other.sqlite").exists()
    assert "mine" in typed("runs", "--journal", "other.sqlite").output
    wrong = typed(*words, "--durability", "often")
    assert (wrong.exit_code, "expected one of sync" in wrong.output) == (2, True)
    twice = typed(*words, "--journal", "other.sqlite", "--run-id", "mine")
    assert twice.exit_code != 0
    assert "mine" in twice.output
