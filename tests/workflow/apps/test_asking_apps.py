"""Runs that ask a person, from the command line, behind a gateway and an MCP server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import go_into, typed

TOOLS = """
from pathlib import Path
import weft

@weft.tool(approve=True, effect="once")
def transfer(to: str, amount: int, note: str = "") -> str:
    with Path("made.txt").open("a") as made:
        made.write(f"{to} {amount} {note}\\n")
    return f"sent {amount} to {to}"
"""
PAY = """
name: pay
description: Pays.
tools: {transfer: ./tools.py:transfer}
inputs: {to: {type: string, default: bob}}
nodes:
  send: {tool: transfer, with: {to: "{{ to }}", amount: 50}}
outputs: {done: "{{ send }}"}
"""
TWO = PAY.replace("nodes:", "nodes:\n  day: {ask: Which day?, schema: {type: string}}").replace(
    "with: {", 'with: {note: "{{ day }}", '
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch)
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "pay.yaml").write_text(PAY)
    (tmp_path / "two.yaml").write_text(TWO)
    return tmp_path


def made() -> list[str]:
    file = Path("made.txt")
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize(
    ("words", "calls"),
    [
        ("yes", ["bob 50 "]),
        ("yes amount=5", ["bob 5 "]),
        ('y to="eve or al" amount=7 note=by the way', ["eve or al 7 by the way"]),
        ('{"approve": true, "arguments": {"to": "al", "amount": 1}}', ["al 1 "]),
        ("no: too much", []),
        ("n", []),
        ("false", []),
    ],
)
def test_a_call_waits_for_what_is_typed_elsewhere(words: str, calls: list[str]) -> None:
    ran = typed("run", "pay.yaml", "--run-id", "r")
    assert (ran.exit_code, made()) == (4, []), ran.output
    assert "weft answer r send/" in ran.output
    shown = typed("runs", "show", "r").output
    assert "may transfer be called?" in shown
    assert "amount" in shown
    data = json.loads(typed("runs", "show", "r", "--json").stdout)["questions"][0]
    assert (data["tool"], data["arguments"]["amount"]) == ("transfer", 50)
    answered = typed("answer", "r", "send", words)
    assert answered.exit_code == 0, answered.output
    resumed = typed("resume", "r")
    assert made() == calls
    assert resumed.exit_code == (0 if calls else 1)
    assert ("too much" in resumed.output) == ("too much" in words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("perhaps", "expected y, y ARGUMENT=VALUE, n: reason"),
        ("yes amont=5", "it takes to, amount, note"),
        ("yes please", "expected NAME=VALUE"),
        ("yes amount=much", "does not fit"),
        ('{"approve": true, "arguments": {"amount": 1}}', "does not fit"),
        ('{"approve": ', "does not fit"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(words: str, said: str) -> None:
    typed("run", "pay.yaml", "--run-id", "r")
    wrong = typed("answer", "r", "send", words)
    assert (wrong.exit_code, said in wrong.output) == (2, True), wrong.output
    assert typed("resume", "r").exit_code == 4
    assert made() == []


def test_yes_approves_calls_and_answers_no_other_question() -> None:
    assert typed("run", "pay.yaml", "--yes").exit_code == 0
    assert made() == ["bob 50 "]
    ran = typed("run", "two.yaml", "--yes", "--run-id", "two")
    assert (ran.exit_code, "weft answer two day" in ran.output) == (4, True), ran.output
    assert typed("resume", "two", "--answer", "day=3").exit_code == 4
    assert typed("resume", "two", "--answer", "send=y amount=2").exit_code == 0
    assert made() == ["bob 50 ", "bob 2 3"]


def test_an_asking_run_is_reported_as_such() -> None:
    ran = typed("run", "pay.yaml", "--json", "--run-id", "r")
    assert (ran.exit_code, json.loads(ran.stdout)["status"]) == (4, "asking")
    unrecorded = typed("run", "pay.yaml", "--durability", "none")
    assert (unrecorded.exit_code, made()) == (4, [])
