"""`weft simulate` on a run that was recorded a moment ago."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from weft.cli.main import app

TOOLS = """
import asyncio
import weft

@weft.tool(effect="pure")
async def search(topic: str) -> str:
    "Search."
    await asyncio.sleep(0.05)
    return topic
"""
FLOW = """
name: notes
tools: {search: "./tools.py:search"}
nodes:
  notes:
    map: "{{ ['a', 'b', 'c', 'd'] }}"
    do: {tool: search, with: {topic: "{{ item }}"}}
outputs: {notes: "{{ notes }}"}
run: {concurrency: 1}
"""


def weft(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.fixture(autouse=True)
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEFT_JOURNAL", str(tmp_path / "journal.sqlite"))
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "notes.yaml").write_text(FLOW)
    assert weft("run", "notes.yaml", "-q").exit_code == 0


def predicted(*options: str) -> dict[str, object]:
    shown = weft("simulate", "last", "--json", *options)
    assert shown.exit_code == 0, shown.output
    found: dict[str, object] = json.loads(shown.stdout)
    return found


def seconds(found: dict[str, object], name: str = "predicted_s") -> float:
    value = found[name]
    assert isinstance(value, float)
    return value


def test_slots_and_speeds() -> None:
    plain = predicted()
    assert seconds(plain) == pytest.approx(seconds(plain, "recorded_s"), rel=0.2)
    assert seconds(plain) >= 4 * 0.05
    assert seconds(predicted("--workers", "4")) < seconds(plain) / 2
    assert seconds(predicted("--latency", "tool.search=0s")) < seconds(plain) / 2
    assert seconds(predicted("--latency", "node.notes[*]=1s")) == pytest.approx(4, rel=0.1)


def test_failures_with_seeds_and_advice() -> None:
    found = predicted("--fail", "search:0.2", "--seeds", "30", "--advise")
    statuses = found["statuses"]
    assert isinstance(statuses, dict)
    assert sum(statuses.values()) == 30
    assert statuses["failed"] > 0
    advice = found["advice"]
    assert isinstance(advice, list)
    assert advice[0]["change"] == "slots: no limit instead of 1"


def test_what_people_read() -> None:
    shown = weft("simulate", "last", "--workers", "2", "--advise")
    assert shown.exit_code == 0
    assert "x as fast" in shown.stdout
    assert "instead of 2" in shown.stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--latency", "tool.serch=x2"), "did you mean `tool.search`"),
        (("--latency", "tool.search"), "is no latency"),
        (("--latency", "tool.search=fast"), "is no latency"),
        (("--model-speed", "x0"), "is no speed"),
        (("--model-speed", "x2"), "has no model"),
        (("--fail", "search:2"), "is no fault"),
        (("--fail", "nobody:0.1"), "has no tool, model or node"),
        (("--limit", "gpu=many"), "is no limit"),
        (("--limit", "gpu=2"), "has no class of slots"),
    ],
)
def test_what_makes_no_sense_is_said(options: tuple[str, str], told: str) -> None:
    shown = weft("simulate", "last", *options)
    assert shown.exit_code == 2
    assert told in shown.stderr.replace("\n", " ")


def test_no_such_run() -> None:
    shown = weft("simulate", "nothing")
    assert shown.exit_code == 2
    assert "nothing" in shown.stderr
