"""Schedules that workflow files declare, as a person registers them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import go_into
from tests.cli.command_line import typed as weft
from tests.integration.queues.workers import WEFT

pytest.importorskip("cronsim", reason="cronsim is not installed (extra `schedules`)")

FLOW = """
name: brief
inputs: {{topic: string}}
{schedule}
nodes: {{said: {{value: "{{{{ topic }}}}"}}}}
outputs: {{said: "{{{{ said }}}}"}}
"""
DAILY = 'schedule: {cron: "0 7 * * 1-5", timezone: Europe/Berlin, inputs: {topic: rivers}}'
TWO = """schedule:
  - {cron: "0 7 * * *", inputs: {topic: rivers}}
  - {name: brief-night, cron: "30 2 * * *", inputs: {topic: lakes}, catch_up: skip, priority: 2}"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch)
    return tmp_path


def write(schedule: str, name: str = "brief") -> None:
    text = FLOW.format(schedule=schedule).replace("name: brief\n", f"name: {name}\n")
    Path(f"{name}.yaml").write_text(text)


def apply(*files: str) -> list[tuple[str, str]]:
    """What applying says: the change and the schedule of each line."""
    done = weft("schedule", "apply", *(files or ("brief.yaml",)))
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    return [(words[0], words[1]) for words in lines if words[0] != "these"]


def listed() -> dict[str, Any]:
    return {one["name"]: one for one in json.loads(weft("schedule", "list", "--json").stdout)}


def test_schedules_follow_their_file() -> None:
    write(DAILY)
    assert apply() == [("added", "brief")]
    assert listed()["brief"]["zone"] == "Europe/Berlin"
    assert "T07:00:00+0" in listed()["brief"]["next"]
    assert apply() == [("unchanged", "brief")]
    write(TWO)
    assert apply() == [("updated", "brief"), ("added", "brief-night")]
    assert (listed()["brief"]["zone"], listed()["brief-night"]["catch_up"]) == ("UTC", "skip")
    write(DAILY)
    assert apply() == [("updated", "brief"), ("removed", "brief-night")]
    write("")
    assert apply() == [("removed", "brief")]
    assert apply() == []
    assert listed() == {}


def test_what_others_have_registered_stays() -> None:
    write("")
    write(DAILY, "other")
    apply("other.yaml")
    assert (
        weft("schedule", "add", "mine", "0 3 * * *", "brief.yaml", "-i", "topic=x").exit_code == 0
    )
    assert apply() == []
    assert set(listed()) == {"mine", "other"}
    write(DAILY.replace("{cron", "{name: other, cron"))
    refused = weft("schedule", "apply", "brief.yaml")
    assert refused.exit_code == 2
    assert "schedule `other` of the workflow `other`" in refused.stderr
    assert "another `name`" in refused.stderr
    both = weft("schedule", "apply", "brief.yaml", "other.yaml")
    assert (both.exit_code, "two workflows declare" in both.stderr) == (2, True)


@pytest.mark.parametrize(
    ("schedule", "line", "says", "remedy"),
    [
        ('schedule: {cron: "0 7 * * 9", inputs: {topic: x}}', 4, "no cron expression", "five"),
        ('schedule: {cron: "0 7 * *", inputs: {topic: x}}', 4, "has 4 fields", "five fields"),
        ('schedule: {cron: "@daily", inputs: {topic: x}}', 4, "not supported", "'0 0 * * *'"),
        (DAILY.replace("Berlin", "Berln"), 4, "no time zone", "IANA"),
        (DAILY.replace("topic", "topics"), 4, "no input `topics`", "schedule's `inputs`"),
        (DAILY.replace("rivers", "3"), 4, "`topic`", "schedule's `inputs`"),
        (DAILY.replace("cron", "crn"), 4, "unknown key `crn`", "did you mean `cron`?"),
        (DAILY.replace("{cron", "{catch_up: al, cron"), 4, "`catch_up`", "did you mean `all`?"),
        (DAILY.replace("{cron", "{concurrency_key: k, cron"), 4, "needs a limit", "limit: 1"),
        (TWO.replace("name: brief-night, ", ""), 6, "two schedules are called `brief`", "a `name`"),
        (TWO.replace("catch_up", "catchup"), 6, "unknown key `catchup`", "`catch_up`"),
        ("schedule: nightly", 4, "must be a mapping", ""),
    ],
)
def test_mistakes_have_a_line_and_a_remedy(
    schedule: str, line: int, says: str, remedy: str
) -> None:
    write(schedule)
    checked = weft("check", "brief.yaml")
    assert checked.exit_code == 2
    assert f"brief.yaml:{line}:" in checked.stderr
    assert says in checked.stderr
    assert remedy in checked.stderr
    assert weft("schedule", "apply", "brief.yaml").exit_code == 2
    assert listed_or_nothing() == {}


def listed_or_nothing() -> dict[str, Any]:
    return listed() if Path("journal.sqlite").exists() else {}


def test_a_worker_registers_them_first() -> None:
    write(DAILY)
    with subprocess.Popen(
        [*WEFT, "worker", "brief.yaml", "--schedules"],
        env=dict(os.environ),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as worker:
        assert worker.stderr is not None
        said = ""
        for line in worker.stderr:
            said += line
            if line.startswith("waiting for runs"):
                break
        worker.kill()
    assert "added  brief  brief@" in said
    assert set(listed()) == {"brief"}
