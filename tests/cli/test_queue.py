"""The commands about queues, as a person would type them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.integration.queues.workers import WEFT
from weft.cli.main import app
from weft.core.ports.queue import queue_of
from weft.workflow.runtime.journals import open_journal

FLOW = """
name: double
inputs: {n: integer}
nodes: {twice: {value: "{{ n * 2 }}"}}
outputs: {twice: "{{ twice }}"}
"""
ASKS = """
name: asks
nodes: {sure: {ask: "Sure?", schema: boolean}}
outputs: {sure: "{{ sure }}"}
"""
FAILS = """
name: fails
inputs: {n: integer}
nodes: {odd: {value: "{{ 1 // n }}"}}
outputs: {odd: "{{ odd }}"}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEFT_JOURNAL", str(tmp_path / "journal.sqlite"))
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "double.yaml").write_text(FLOW)
    (tmp_path / "flows" / "asks.yml").write_text(ASKS)
    return tmp_path


def weft(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def untimed(line: str) -> str:
    """A line of a worker, without its time."""
    time, *words = line.split()
    assert re.fullmatch(r"\d\d:\d\d:\d\d", time)
    return " ".join(words)


def data(*words: str) -> Any:
    shown = weft(*words, "--json")
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)


def submit(*words: str, flow: str = "flows/double.yaml") -> Result:
    return weft("submit", flow, *words)


def test_a_submitted_run_is_listed_and_cancelled(folder: Path) -> None:
    done = submit("-i", "n=3", "--key", "order-1", "--priority", "2", "--at", "1h")
    assert (done.exit_code, done.stdout) == (0, "order-1\n")
    assert submit("-i", "n=3", "--key", "order-1").stdout == "order-1\n"
    assert "its priority stays 2" in submit("-i", "n=3", "--key", "order-1").stderr
    (entry,) = data("queue", "list")
    assert (entry["run"], entry["state"], entry["priority"]) == ("order-1", "queued", 2)
    assert entry["due"] is not None
    (counted,) = data("queue", "versions")
    assert counted == {"flow": "double", "version": entry["version"], "runs": 1, "waiting": 0}
    assert f"double@{entry['version']}" in weft("queue", "list").stdout
    done = weft("queue", "cancel", "order-1", "--reason", "enough")
    assert done.stdout == "order-1 has ended: cancelled\n"
    assert data("queue", "list") == []
    (ended,) = data("queue", "list", "--state", "ended")
    assert ended["status"] == "cancelled"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("-i", "n=4", "--key", "order-1"), 2, "other inputs"),
        (("-i", "n=3", "--key", "no good"), 2, "letters"),
        (("-i", "m=3"), 2, "there is no input"),
        (("-i", "n=3", "--at", "soon"), 2, "`at` is no time: 'soon'"),
        (("-i", "n=3", "--at", "2020"), 2, "a delay such as 10m"),
        (("-i", "n=3", "--at", "2026-01-01T00:00"), 2, "zone"),
        (("-i", "n=3", "--concurrency-key", "k"), 2, "--concurrency-limit N"),
        ((), 2, "on the command line as -i n=..."),
    ],
)
def test_mistakes(folder: Path, words: tuple[str, ...], code: int, says: str) -> None:
    submit("-i", "n=3", "--key", "order-1")
    done = submit(*words)
    assert done.exit_code in (1, code)
    assert says in done.stderr


def test_a_worker_executes_and_drains(folder: Path) -> None:
    submit("-i", "n=3", "--key", "order-1")
    submit("--key", "asks-1", flow="flows/asks.yml")
    (folder / "flows" / "fails.yaml").write_text(FAILS)
    submit("--key", "fails-1", "-i", "n=0", flow="flows/fails.yaml")
    with subprocess.Popen(
        [*WEFT, "worker", "flows"],
        cwd=folder,
        env=dict(os.environ),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        try:
            assert worker.stderr is not None
            first = worker.stderr.readline()
            assert first.endswith(f"waiting for runs in {folder / 'journal.sqlite'}\n")
            lines: list[str] = []
            for line in worker.stderr:
                lines.append(untimed(line))
                if {"ended order-1 succeeded", "asking asks-1 sure"} <= set(lines) and any(
                    each.startswith("ended fails-1 failed: ") for each in lines
                ):
                    break
            assert [entry["state"] for entry in data("queue", "list")] == ["asking"]
            alive, table = data("queue", "workers"), weft("queue", "workers").stdout
            assert "; a worker with asks@" in weft("answer", "asks-1", "sure", "y").stdout
            for line in worker.stderr:
                if untimed(line) == "ended asks-1 succeeded":
                    break
            worker.send_signal(signal.SIGTERM)
            out, _ = worker.communicate(timeout=120)
        finally:
            worker.kill()  # or a test that fails would wait for it
    assert worker.returncode == 0
    assert [(one["pid"], one["concurrency"]) for one in alive] == [(worker.pid, 4)]
    assert f"process {worker.pid}  0 of 4 runs  since" in table
    assert " ".join(alive[0]["versions"]) in table
    assert "no worker is alive" in weft("queue", "workers").stdout
    again = weft("queue", "retry", "order-1")
    assert (again.exit_code != 0, "has succeeded" in again.stderr) == (True, True)
    assert "no run is stopped;" in weft("queue", "list", "--state", "stopped").stdout
    assert {line.partition("@")[0] for line in out.splitlines()} == {"asks", "double", "fails"}


def test_schedules(folder: Path) -> None:
    pytest.importorskip("cronsim", reason="cronsim is not installed (extra `schedules`)")
    given = ("flows/double.yaml", "-i", "n=1", "--zone", "Europe/Berlin")
    assert "fires next at" in weft("schedule", "add", "nightly", "0 3 * * *", *given).stdout
    (listed,) = data("schedule", "list")
    assert (listed["name"], listed["cron"], listed["catch_up"]) == ("nightly", "0 3 * * *", "one")
    assert "T03:00:00+0" in listed["next"]
    assert "wait for a worker" not in weft("schedule", "list").stdout
    submit("-i", "n=1")
    assert "that wait for a worker: 1" in weft("schedule", "list").stdout
    wrong = weft("schedule", "add", "nightly", "0 3 * *", *given)
    assert wrong.exit_code != 0
    assert "five fields" in wrong.stderr
    seconds = weft("schedule", "add", "nightly", "* * * * * *", *given)
    assert (seconds.exit_code != 0, "five fields" in seconds.stderr) == (True, True)
    short = weft("schedule", "add", "nightly", "@Daily", *given)
    assert (short.exit_code != 0, "write '0 0 * * *'" in short.stderr) == (True, True)
    missing = weft("schedule", "remove", "nightl")
    assert missing.exit_code != 0
    assert "nightly" in missing.stderr
    assert weft("schedule", "remove", "nightly").exit_code == 0
    assert data("schedule", "list") == []


def test_a_version_that_no_worker_takes_is_said(folder: Path) -> None:
    submit("-i", "n=3", "--key", "old")
    (old,) = data("queue", "list")
    assert old["waiting"] == "waits for a worker with this version"
    (folder / "flows" / "double.yaml").write_text(FLOW.replace("n * 2", "n + n"))
    submit("-i", "n=3", "--key", "new")
    version = next(each["version"] for each in data("queue", "list") if each["run"] == "new")
    with closing(open_journal()) as journal:
        taken = queue_of(journal).take(["default"], [version])
        assert taken is not None
        note = f"waits for a worker with this version; workers last took version {version}"
        waiting = {entry["run"]: entry["waiting"] for entry in data("queue", "list")}
        assert waiting == {"old": note, "new": None}
        taken.claim.release()
    assert f"double@{old['version']}  1 run  {note}" in weft("queue", "versions").stdout


def test_a_folder_without_workflows(folder: Path) -> None:
    (folder / "empty").mkdir()
    done = weft("worker", "empty")
    assert done.exit_code == 2
    assert "contains no *.yaml" in done.stderr


def worker_until_it_waits(*words: str) -> tuple[str, str]:
    """What a worker says until it waits for runs, and the versions that it has."""
    with subprocess.Popen(
        [*WEFT, "worker", *words],
        env=dict(os.environ),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stderr is not None
        said = ""
        for line in worker.stderr:
            said += line
            if line.startswith("waiting for runs"):
                break
        worker.terminate()
        out, _ = worker.communicate(timeout=120)
    return said, out


def test_a_worker_warns_of_other_files_and_of_a_new_journal(folder: Path) -> None:
    (folder / "flows" / "compose.yaml").write_text("services: {db: {image: postgres}}\n")
    (folder / "flows" / "broken.yml").write_text(
        "name: broken\nnodes:\n  a: {value: '{{ b }}'}\noutputs: {a: '{{ a }}'}\n"
    )
    (folder / "flows" / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    said, out = worker_until_it_waits("flows", "--journal", "new.sqlite")
    assert f"there was no journal {folder / 'new.sqlite'}: created it" in said
    warned = re.findall(r"warning: left out flows/(\S+): (.+)", said)
    assert [name.partition(":")[0] for name, _ in warned] == [
        "broken.yml",
        "bytes.yaml",
        "compose.yaml",
    ]
    assert warned[0][0] == "broken.yml:3"
    assert "`b`" in warned[0][1] or "'b'" in warned[0][1]
    assert {line.partition("@")[0] for line in out.splitlines()} == {"asks", "double"}


def test_a_worker_without_a_usable_workflow_is_an_error(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "compose.yaml").write_text("services: {db: {image: postgres}}\n")
    done = weft("worker", "other")
    assert done.exit_code == 2
    assert "warning: left out other/compose.yaml" in done.stderr
    assert "none of 1 file is a workflow" in done.stderr
    named = weft("worker", "other/compose.yaml")
    assert (named.exit_code, "warning" in named.stderr) == (2, False)
