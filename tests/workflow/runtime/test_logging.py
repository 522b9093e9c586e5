"""`logging` under `weft.*`: levels, no handlers, no secrets, no prompts."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import weft
import weft.serve
from weft.errors import ModelUnavailable
from weft.testing import FakeClock, FakeModel, Reply

LOGGERS = ("weft.runs", "weft.nodes", "weft.tools", "weft.models", "weft.journal", "weft.telemetry")


def run(prompt: str = "a private prompt") -> weft.FlowResult:
    model = FakeModel([Reply(error=ModelUnavailable("it is down")), "a private answer"])
    flow = weft.Flow("f", models={"small": model})
    flow.output(x=flow.model("small", prompt, retry={"attempts": 2}, name="x"))
    clock = FakeClock()
    return clock.run(flow.run(clock=clock, durability="none"))


def test_info_tells_runs_and_failures_without_content(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "weft"):
        assert run().ok
    lines = [(record.name, record.levelname) for record in caplog.records]
    assert lines == [("weft.runs", "INFO"), ("weft.nodes", "INFO"), ("weft.runs", "INFO")]
    assert "begins: f, 1 nodes" in caplog.messages[0]
    assert caplog.messages[1].endswith(": ModelUnavailable")
    assert "succeeded in " in caplog.messages[2]
    assert "private" not in caplog.text


def test_debug_tells_every_node(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "weft"):
        run()
    assert [m for m in caplog.messages if "x starts, attempt 2" in m]
    assert "ModelUnavailable: it is down" in caplog.text
    assert "private" not in caplog.text


def test_nothing_is_logged_unless_somebody_wants_it(caplog: pytest.LogCaptureFixture) -> None:
    run()
    assert caplog.records == []


def test_secrets_are_redacted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert weft.serve.OpenAIModel  # all modules with loggers are loaded now
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-0815")
    run()  # reads the environment
    with caplog.at_level(logging.DEBUG, "weft"):
        for name in LOGGERS:
            logging.getLogger(name).error("the key is %s", "sk-very-secret-0815")
    monkeypatch.undo()
    run()
    assert len(caplog.records) == len(LOGGERS)
    assert "very-secret" not in caplog.text


def test_weft_installs_no_handlers_and_documents_its_loggers() -> None:
    code = (
        "import logging, weft, weft.testing\n"
        "f = weft.Flow('f'); f.output(x=f.value(1)); f.run_sync(durability='none')\n"
        "names = ['weft', *(n for n in logging.root.manager.loggerDict if n.startswith('weft.'))]\n"
        "assert not [n for n in names if logging.getLogger(n).handlers], names\n"
        "print(*names)\n"
    )
    made = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    page = Path(__file__).parents[3].joinpath("docs/telemetry.md").read_text("utf-8")
    for name in {*made.stdout.split(), *LOGGERS} - {"weft"}:
        assert f"`{name}`" in page, name
