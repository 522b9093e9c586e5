"""`--thinking` of `weft think` and `weft ask`, for each kind of model."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.serving.openai.scripted import EndpointServer, says
from weft.cli.main import app
from weft.testing import FakeModel, Reply
from weft.workflow.runtime.models.factory import Models

SERVER = ["--model", "m", "--base-url"]
COMMANDS = [["think", "?", "--strategy", "direct"], ["ask", "?", "--agent", "parallel-react"]]
ON = {"enable_thinking": True, "thinking": True}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, FakeModel]]:
    """Runs a command on a fake model: the declaration of the model, and the fake."""

    def ask(*arguments: str) -> tuple[Any, FakeModel]:
        model = FakeModel(lambda _: Reply("Four.", reasoning="hm " * 9))
        declared: list[Any] = []

        def client(_: Models, unit: Any, name: str) -> FakeModel:
            declared.append(unit.document.models[name])
            return model

        monkeypatch.setattr(Models, "client", client)
        result = CliRunner().invoke(app, [*arguments, "--json"])
        assert result.exit_code == 0, result.output
        return declared[0], model

    return ask


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("model", [[], ["--model", "vllm:qwen"], [*SERVER, "http://127.0.0.1:1"]])
def test_off_is_a_thought_of_no_tokens(command: list[str], model: list[str], asked: Any) -> None:
    _, fake = asked(*command, *model, "--thinking", "off")
    assert {request.sampling.thinking_tokens for request in fake.requests} == {0}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("how", "mode"), [("off", "disabled"), ("on", "adaptive")])
def test_hosted_models_have_modes(command: list[str], how: str, mode: str, asked: Any) -> None:
    spec, fake = asked(
        *command, "--model", "anthropic:claude", "--ignore", "seed", "--thinking", how
    )
    assert spec.options == {"ignore": ["seed"], "thinking": mode}
    assert {request.sampling.thinking_tokens for request in fake.requests} == {None}


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (["--model", "local:smollm2-135m-instruct"], {"chat_template_kwargs": ON}),
        (["--model", "vllm:qwen"], {"extra_body": {"chat_template_kwargs": ON}}),
        ([*SERVER, "http://127.0.0.1:1"], {"extra_body": {"chat_template_kwargs": ON}}),
    ],
)
def test_on_is_a_variable_of_chat_templates(model: list[str], options: Any, asked: Any) -> None:
    spec, _ = asked(*COMMANDS[0], *model, "--thinking", "on")
    assert spec.options == options


@pytest.mark.parametrize("command", COMMANDS)
def test_an_effort(command: list[str], asked: Any) -> None:
    _, fake = asked(*command, "--thinking", "low")
    assert {request.sampling.reasoning_effort for request in fake.requests} == {"low"}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("fields", "further", "sent"),
    [
        ({"off": {"reasoning_effort": "none"}}, [], {"reasoning_effort": "none"}),
        ({"budget": "think_most"}, ["--thinking-tokens", "70"], {"think_most": 70}),
    ],
)
def test_fields_of_a_server_reach_it(
    command: list[str],
    fields: Any,
    further: list[str],
    sent: dict[str, Any],
    endpoints: EndpointServer,
) -> None:
    endpoint = endpoints.add(says("Four."))
    options = [*SERVER, endpoint.base_url, "--thinking", json.dumps(fields), *further]
    result = CliRunner().invoke(app, [*command, *options, "--json"])
    assert result.exit_code == 0, result.output
    bodies = [request for request in endpoint.requests if "messages" in request]
    assert bodies
    for body in bodies:
        assert sent.items() <= body.items()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--thinking", "offf"], "did you mean off?"),
        (["--thinking", "lo"], "did you mean low?"),
        (["--thinking", "off", "--thinking-tokens", "9"], "does not go with --thinking-tokens"),
        (["--thinking", "on", "--thinking-tokens", "0"], "on does not go with"),
        (["--thinking", "low", "--reasoning-effort", "high"], "contradicts"),
        (["--thinking", '{"off": {"a": 1}}'], "behind --base-url"),
        ([*SERVER, "http://127.0.0.1:1/v1", "--thinking", '{"of": {"a": 1}}'], "mean `off`"),
    ],
)
def test_what_does_not_go_together(command: list[str], options: list[str], words: str) -> None:
    result = CliRunner().invoke(app, [*command, *options])
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
