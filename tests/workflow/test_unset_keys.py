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
    assert "f.yaml:3; set it, or name another in `api_key_env`" in said.output
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


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("anthropic:m", "ANTHROPIC_API_KEY"),
        ("{use: anthropic, model: m}", "ANTHROPIC_API_KEY"),
        ("{use: gemini, model: m}", "GEMINI_API_KEY"),
        ("{use: gemini, model: m, api_key_env: NO_D}", "NO_D"),
    ],
)
def test_the_usual_key_of_a_hosted_model(
    model: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_into(tmp_path, monkeypatch)
    monkeypatch.delenv(variable, raising=False)
    (tmp_path / "f.yaml").write_text(
        f"name: f\nmodels:\n  small: {model}\nnodes:\n  a: {{model: small, prompt: hello}}\n"
        'outputs: {a: "{{ a }}"}\n'
    )
    said = typed("check", "f.yaml")
    assert said.exit_code == 0
    assert f"the environment variable {variable} is not set" in said.output
    assert "f.yaml:3;" in said.output
    monkeypatch.setenv(variable, "sk-1")
    assert variable not in typed("check", "f.yaml").output


def test_a_hosted_model_at_another_address_is_not_sent_the_usual_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_into(tmp_path, monkeypatch)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (tmp_path / "f.yaml").write_text(
        'name: f\nmodels:\n  small: {use: anthropic, model: m, base_url: "http://127.0.0.1:1"}\n'
        'nodes:\n  a: {model: small, prompt: hello}\noutputs: {a: "{{ a }}"}\n'
    )
    assert "ANTHROPIC_API_KEY" not in typed("check", "f.yaml").output
