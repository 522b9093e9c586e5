"""`weft regroup RUN`: the plan of the calls of a recorded run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import go_into
from tests.cli.command_line import typed as weft
from weft.planner.text.reader import read

TOOLS = """\
import weft


@weft.tool
def price(item: str) -> dict:
    return {"amount": 1000 + len(item), "currency": "crowns"}


@weft.tool
def total(amounts: list) -> int:
    if not amounts:
        raise RuntimeError("nothing to add")
    return sum(amounts)
"""
FLOW = """\
name: shop
inputs: {question: string}
tools: {price: "./tools.py:price", total: "./tools.py:total"}
nodes:
  nothing: {tool: total, with: {amounts: []}, default: 0}
  tea: {tool: price, with: {item: tea}, after: nothing}
  coffee: {tool: price, with: {item: coffee}, after: tea}
  sum: {tool: total, with: {amounts: ["{{ tea.amount }}", "{{ coffee.amount }}"]}}
outputs: {sum: "{{ sum }}"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch)
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "shop.yaml").write_text(FLOW)
    done = weft("run", "shop.yaml", "-i", "question=What do tea and coffee cost?", "--run-id", "a")
    assert done.exit_code == 0, done.output
    return tmp_path


def test_a_plan_its_levels_and_what_was_left_out() -> None:
    done = weft("regroup", "a")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        '1. price(item="tea")',
        '2. price(item="coffee")',
        "3. total(amounts=[$1.amount, $2.amount])",
        "4. join()",
        "level 1: 1, 2",
        "level 2: 3",
        "left out: 1 call that failed",
    ]


def test_turns_for_training_and_json(folder: Path) -> None:
    data = json.loads(weft("regroup", "last", "--out", "turns.jsonl", "--json").stdout)
    assert data["run"] == "a"
    assert data["needs"] == {"1": [], "2": [], "3": [1, 2]}
    assert data["failed_calls"] == 1
    assert data["ambiguities"] == []
    assert len(read(data["plan"]).steps) == 3
    turns = [json.loads(line) for line in (folder / "turns.jsonl").read_text().splitlines()]
    assert [[call["name"] for call in turn["calls"]] for turn in turns] == [
        ["price", "price"],
        ["total"],
    ]
    assert turns[1]["messages"][0]["content"] == "What do tea and coffee cost?"


def test_a_run_that_there_is_not() -> None:
    done = weft("regroup", "nothing")
    assert done.exit_code == 2
    assert "nothing" in done.stderr
