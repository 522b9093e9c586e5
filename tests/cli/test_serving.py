"""`weft serve`, `ps` and `stop` as processes, with the fake engine in the place of vLLM."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.terminal import Terminal
from tests.serving.vllm.conftest import state  # noqa: F401 - a fixture
from tests.serving.vllm.supervise.polling import ask, nothing_left, until
from weft.cli.main import app
from weft.serving.vllm.supervise import registry
from weft.serving.vllm.supervise.registry import ServingEntry

WEFT = [sys.executable, "-m", "tests.serving.vllm.fake_weft", "weft"]
pytestmark = pytest.mark.usefixtures("state")


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that a test started; whatever happens, they end with it."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def weft(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "120", **env}
    return subprocess.run(
        [*WEFT, *words], capture_output=True, text=True, timeout=300, env=environment
    )


def serve(started: list[subprocess.Popen[str]], *words: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [*WEFT, "serve", "fake", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    started.append(process)
    return process


def only(status: str = "ready") -> ServingEntry:
    def found() -> ServingEntry | None:
        with registry.locked():
            return next((e for e in registry.entries() if e.status == status), None)

    return until(found, f"a serving that is {status}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_serves_until_a_signal(
    started: list[subprocess.Popen[str]], number: signal.Signals
) -> None:
    process = serve(started)
    entry = only()
    assert ask(entry.urls[0])
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert entry.urls[0] in out
    assert f"weft stop {entry.id}" in out
    assert "loading weights" in err
    assert "Traceback" not in err
    nothing_left(entry)


def test_a_signal_during_the_start(
    started: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NEVER", "1")
    process = serve(started)
    entry = only("starting")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out == ""
    nothing_left(entry)


def test_ps_and_stop(started: list[subprocess.Popen[str]]) -> None:
    assert "no model server runs" in weft("ps").stdout
    process = serve(started, "--replicas", "2", "--name", "mine")
    entry = only()
    (told,) = json.loads(weft("ps", "--json").stdout)
    assert told["id"] == entry.id
    assert told["urls"] == list(entry.urls)
    assert told["status"] == "ready"
    assert told["supervisor"] == process.pid
    table = weft("ps").stdout
    assert entry.id in table
    assert entry.urls[1] in table
    assert "mine" in table
    unknown = weft("stop", "nobody")
    assert unknown.returncode == 1
    assert entry.id in unknown.stderr
    assert weft("stop", "mine").stdout == f"{entry.id} is gone\n"
    process.communicate(timeout=120)
    assert process.returncode == 0
    nothing_left(entry)


def test_killed_with_sigkill_it_leaves_nothing(started: list[subprocess.Popen[str]]) -> None:
    process = serve(started, "--replicas", "2")
    entry = only()
    process.kill()
    nothing_left(entry)
    assert json.loads(weft("ps", "--json").stdout) == []


def test_detached_it_stays_until_stopped() -> None:
    served = weft("serve", "fake", "--detach")
    entry = only()
    assert served.returncode == 0
    assert f"weft stop {entry.id}" in served.stdout
    assert ask(entry.urls[0])
    assert weft("stop", "--all", "--now").stdout == f"{entry.id} is gone\n"
    nothing_left(entry)
    assert weft("stop", "--all").stdout == "no model server runs\n"


@pytest.mark.parametrize("words", [(), ("--detach",)])
def test_a_failing_start_is_told(words: tuple[str, ...]) -> None:
    served = weft("serve", "fake", *words, FAKE_ERROR="ValueError: no such thing")
    assert served.returncode == 1
    assert "no such thing" in served.stderr
    assert "0.log" in served.stderr
    assert "Traceback" not in served.stderr
    assert served.stdout == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["serve"], "MODEL"),
        (["serve", "fake", "--tp", "0"], "tp"),
        (["serve", "fake", "--port", "70000"], "70000"),
        (["serve", "fake", "--port", "65535", "--replicas", "4"], "replicas"),
        (["serve", "fake", "--decode", "magic"], "magic"),
        (["serve", "fake", "--host", "0.0.0.0"], "--api-key-env"),
        (["serve", "fake", "--api-key-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE"),
        (["serve", "fake", "--kv-cache", "much"], "512MiB"),
        (["serve", "fake", "--lora", "x"], "NAME=VALUE"),
        (["serve", "fake", "--drain", "soon"], "duration"),
        (["serve", "fake", "other"], "other"),
        (["serve", "fake", "--engine", "sglang"], "vllm"),
        (["stop"], "--all"),
        (["stop", "x", "--all"], "--all"),
        (["serve", "fake", "--on", "kubernetes"], "is neither ray nor local"),
        (["serve", "fake", "--on", "ray:here"], "no address of a Ray cluster"),
        (["serve", "fake", "--on", "ray", "--detach"], "goes without --detach"),
        (["serve", "fake", "--on", "ray", "--dry-run"], "goes without --detach and --dry-run"),
        (["serve", "fake", "--on", "ray", "--host", "0.0.0.0"], "at its node's address"),
    ],
)
def test_wrong_usage_is_status_2(words: list[str], told: str) -> None:
    ran = CliRunner().invoke(app, words, env={"COLUMNS": "120"})
    assert ran.exit_code == 2
    assert told in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_dry_run_shows_commands_and_no_key() -> None:
    ran = weft("serve", "fake", "--dry-run", "--replicas", "2", "--port", "8000")
    assert ran.returncode == 0
    assert "fake_engine.py 8000" in ran.stdout
    assert "fake_engine.py 8001" in ran.stdout
    assert "FAKE_REPLICA=1 \\\n" in ran.stdout
    secret = weft("serve", "fake", "--dry-run", "--api-key-env", "MY_KEY", MY_KEY="0")
    assert "FAKE_REPLICA=$MY_KEY" in secret.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_on_a_terminal_it_moves_in_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: signal.Signals
) -> None:
    """SIGHUP: the terminal is closed, so that nothing can be shown any more."""
    monkeypatch.setenv("FAKE_GATE", str(tmp_path / "gate"))
    with Terminal([*WEFT, "serve", "fake"]) as terminal:
        terminal.wait_for("loading weights")
        (tmp_path / "gate").touch()
        entry_id = terminal.wait_for(re.compile(r"weft stop \S+\s")).split()[-1]
        if number == signal.SIGHUP:
            terminal.hang_up()
        terminal.process.send_signal(number)
        terminal.end()
    if number == signal.SIGINT:
        assert terminal.process.returncode == 0
    assert entry_id.startswith("fake-")
    assert not Path(os.environ["WEFT_STATE_DIR"], "servers", f"{entry_id}.json").exists()
