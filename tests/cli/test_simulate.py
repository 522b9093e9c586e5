"""`weft simulate` on a run that was recorded a moment ago."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.durability.simulate.test_what_if import called
from weft.cli.main import app
from weft.core.errors import InputError
from weft.durability.simulate import recording
from weft.workflow.history.simulation import parse_change

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
    assert (
        "Injected: the simulation made it" in weft("simulate", "last", "--fail", "search:1").stdout
    )
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
        (("--model-speed", "search=x2"), "hint: it has none"),
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


def test_a_model_may_be_called_as_in_other_options() -> None:
    found = recording(called())
    assert parse_change(found, speeds=["model.small=x2"]) == parse_change(
        found, speeds=["small=x2"]
    )
    with pytest.raises(InputError, match=r"no model called 'model\.other'") as raised:
        parse_change(found, speeds=["other=x2"])
    assert raised.value.hint is not None
    assert "model.small" in raised.value.hint
    assert "tool.search" not in raised.value.hint


def test_a_run_that_waits_for_a_person_is_simulated_as_far_as_it_came(tmp_path: Path) -> None:
    words = "had not come to its end"
    assert words not in weft("simulate", "last").stdout
    assert predicted()["ended"] is True
    asks = FLOW.replace("name: notes", "name: asks").replace(
        "outputs:", '  sure: {ask: "{{ notes }}?"}\noutputs:'
    )
    (tmp_path / "asks.yaml").write_text(asks)
    assert weft("run", "asks.yaml", "-q").exit_code == 4
    shown = weft("simulate", "last").stdout
    assert words in shown
    assert "cut off there" in shown
    assert predicted()["ended"] is False


def test_the_example_of_the_docs() -> None:
    docs = Path(__file__).parents[2] / "docs" / "simulate.md"
    (program,) = re.findall(r"```python\n(.*?)```", docs.read_text("utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(program, "simulate.md", "exec"), names)
    assert names["predicted"]


def test_no_such_run() -> None:
    shown = weft("simulate", "nothing")
    assert shown.exit_code == 2
    assert "nothing" in shown.stderr


def test_a_cluster_needs_no_run() -> None:
    command = ("simulate", "--nodes", "100", "--items", "2000", "--seconds", "0.5")
    shown = weft(*command)
    assert shown.exit_code == 0, shown.output
    assert "2,000 of 500 ms" in shown.stdout
    assert "weft's process" in shown.stdout
    assert "content store" not in shown.stdout
    large = weft(*command, "--result-bytes", "1000000", "--json", "--journal", "postgresql://x/y")
    found = json.loads(large.stdout)
    assert found["capacity"]["store"] > 0
    assert found["wall_s"] > found["ideal_s"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "which run?"),
        (("last", "--nodes", "3"), "--nodes is not for a recorded run"),
        (("--nodes", "3", "--workers", "2"), "--nodes is not for a recorded run"),
        (("--nodes", "3", "--seconds", "0"), "0"),
        (("--nodes", "3", "--seconds", "soon"), "soon"),
    ],
)
def test_a_run_or_a_cluster(options: tuple[str, ...], message: str) -> None:
    refused = weft("simulate", *options)
    assert refused.exit_code != 0
    assert message in refused.stderr
