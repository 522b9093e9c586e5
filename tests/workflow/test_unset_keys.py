"""A variable of a key that is not set is named by `weft check`, and when a run starts."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import weft
from tests.cli.command_line import go_into, typed
from tests.serving.openai.scripted import EndpointServer, says
from weft.testing import FakeModel

FLOW = """name: f
models:
  small: {{use: openai, model: m, base_url: "{url}", api_key_env: {variable}}}
nodes:
  a: {{model: small, prompt: hello}}
outputs: {{a: "{{{{ a }}}}"}}
"""


def test_check_names_the_variable_and_accepts_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_into(tmp_path, monkeypatch)
    (tmp_path / "f.yaml").write_text(FLOW.format(url="http://127.0.0.1:1/v1", variable="NO_A"))
    monkeypatch.delenv("NO_A", raising=False)
    said = typed("check", "f.yaml")
    assert said.exit_code == 0
    assert "  the model small: the environment variable NO_A is not set" in said.output
    monkeypatch.setenv("NO_A", "sk-1")
    assert "NO_A" not in typed("check", "f.yaml").output


def test_a_run_logs_it_once_and_goes_on(
    endpoints: EndpointServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("NO_B", raising=False)
    endpoint = endpoints.add(says("hi"))
    flow = weft.loads(FLOW.format(url=endpoint.base_url, variable="NO_B"))
    for _ in range(2):
        assert flow.run_sync()["a"] == "hi"
    logged = [record for record in caplog.records if "NO_B" in record.getMessage()]
    assert [(record.levelno, record.name) for record in logged] == [(logging.WARNING, "weft.runs")]


def test_a_model_that_is_replaced_needs_no_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("NO_C", raising=False)
    flow = weft.loads(FLOW.format(url="http://127.0.0.1:1/v1", variable="NO_C"))
    assert flow.run_sync(models={"small": FakeModel(["hi"])})["a"] == "hi"
    assert "NO_C" not in caplog.text
