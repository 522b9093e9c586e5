"""Hosted models as a user reaches them: from a file, from Python, from the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import weft
from tests.serving.openai.scripted import Endpoint, EndpointServer
from tests.serving.providers.scripted import APIS, KEY, HostedApi, root
from weft.cli.main import app
from weft.core.values import ToolCall
from weft.errors import BuildError, CapabilityError, SourceError
from weft.testing import Reply

FLOW = """\
name: hosted
models:
  big: {{use: {use}, model: m, base_url: "{url}", api_key_env: HOSTED_KEY, options: {options}}}
nodes:
  a: {{model: big, prompt: "Hello", max_tokens: 20}}
outputs: {{a: "{{{{ a }}}}"}}
"""


@pytest.fixture(params=list(APIS))
def api(request: pytest.FixtureRequest) -> HostedApi:
    return APIS[request.param]


@pytest.fixture
def endpoint(
    api: HostedApi, endpoints: EndpointServer, monkeypatch: pytest.MonkeyPatch
) -> Endpoint:
    monkeypatch.setenv("HOSTED_KEY", KEY)
    return api.endpoint(
        endpoints, lambda body: api.plays(Reply("Four.", reasoning="Two and two."), body)
    )


def flow(api: HostedApi, endpoint: Endpoint, options: str = "{}") -> weft.Flow:
    return weft.loads(FLOW.format(use=api.name, url=root(endpoint), options=options))


def test_from_a_file(api: HostedApi, endpoint: Endpoint) -> None:
    price = "{price: {prompt: 1000000, completion: 2000000}, connect_timeout_s: 100}"
    result = flow(api, endpoint, price).run_sync()
    assert result.outputs == {"a": "Four."}
    usage = result.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.money) == (7, 4, 15.0)
    assert KEY in str(endpoint.headers)


def test_from_python(api: HostedApi, endpoint: Endpoint) -> None:
    made = weft.Flow("python", models={"big": {**_mapping(api), "base_url": root(endpoint)}})
    made.output(a=made.model("big", "Hello", name="a"))
    assert made.run_sync().outputs == {"a": "Four."}
    short = weft.Flow("short", models={"big": f"{api.name}:m"})
    short.output(a=short.model("big", "Hello", name="a"))
    assert short.document.models["big"].use == api.name


def test_from_the_command_line(api: HostedApi, endpoint: Endpoint) -> None:
    common = ["--model", f"{api.name}:m", "--base-url", root(endpoint), "--api-key-env"]
    arguments = ["think", "2 + 2?", *common, "HOSTED_KEY", "--quiet", "--width", "2"]
    ignored = ["--ignore", "temperature", "--ignore", "seed"] if api is APIS["anthropic"] else []
    done = CliRunner().invoke(app, [*arguments, *ignored])
    assert done.exit_code == 0, done.output
    assert done.stdout.split() == ["answer", "Four."]
    assert len(endpoint.requests) == 2
    assert KEY not in done.output
    if ignored:
        refused = CliRunner().invoke(app, arguments)
        assert refused.exit_code == 1
        assert "--ignore temperature --ignore seed" in " ".join(refused.output.split())


def test_the_command_line_needs_the_key(api: HostedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    named = ["--model", f"{api.name}:m", "--api-key-env", "NO_SUCH_KEY"]
    done = CliRunner().invoke(app, ["think", "2 + 2?", *named])
    assert done.exit_code == 1
    assert "NO_SUCH_KEY is not set" in done.output


def test_a_setting_that_the_api_does_not_take_fails_the_node(endpoints: EndpointServer) -> None:
    api = APIS["anthropic"]
    endpoint = api.endpoint(endpoints, lambda body: api.plays(Reply("Four."), body))
    text = FLOW.format(use="anthropic", url=root(endpoint), options="{}")
    text = text.replace("api_key_env: HOSTED_KEY, ", "").replace("max_tokens: 20", "temperature: 0")
    (error,) = weft.loads(text).run_sync().errors.values()
    assert isinstance(error, CapabilityError)
    assert "does not take temperature" in error.message
    assert not endpoint.requests
    ignoring = text.replace("options: {}", "options: {ignore: [temperature]}")
    assert weft.loads(ignoring).run_sync().outputs == {"a": "Four."}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("{use: anthropic}", "no `model`"),
        ("{use: anthropic, model: m, options: {heat: 3}}", "heat"),
        ("{use: anthropic, model: m, options: {ignore: temperature}}", "`ignore` is a list"),
        ("{use: anthropic, model: m, options: {ignore: [max_tokens]}}", "not 'max_tokens'"),
        ("{use: gemini, model: m, options: {thinking: deep}}", "`thinking` is adaptive"),
        ("{use: gemini, model: m, options: {thinking: true}}", "`thinking` is adaptive"),
        ("{use: gemini, model: m, options: {connections: 0}}", "`connections` is a number"),
        ("{use: gemini, model: m, options: {price: {prompts: 1}}}", "price"),
        ("{use: gemini, model: m, options: {api_version: 7}}", "`api_version` is a text"),
        ("{use: gemini, model: m, base_url: nowhere}", "base_url"),
        ("{use: gemini, model: m, base_url: ['http://a', 'http://b']}", "one address"),
        ("{use: anthropic, model: m, api_key_env: 'sk-ant-1'}", "api_key_env"),
        ("'anthropic:'", "expected local:NAME"),
    ],
)
def test_wrong_declarations_are_found_by_check(spec: str, words: str) -> None:
    text = f"name: x\nmodels: {{m: {spec}}}\nnodes: {{a: {{model: m, prompt: hi}}}}\n"
    with pytest.raises(SourceError, match=words) as raised:
        weft.loads(text + 'outputs: {a: "{{ a }}"}\n').check()
    assert raised.value.line == 2


def test_a_decoder_is_refused_before_anything_runs() -> None:
    text = "name: x\nmodels: {m: gemini:m}\nnodes: {a: {model: m, prompt: hi, decode: llada}}\n"
    with pytest.raises(BuildError, match="decodes all of its requests alike"):
        weft.loads(text + 'outputs: {a: "{{ a }}"}\n').check()


def test_check_imports_no_library_of_a_vendor(tmp_path: Path) -> None:
    file = tmp_path / "hosted.yaml"
    file.write_text(
        "name: x\nmodels: {c: anthropic:m, g: gemini:m}\nnodes:\n"
        "  a: {model: c, prompt: hi}\n  b: {model: g, prompt: hi}\noutputs: {a: '{{ a }}'}\n"
    )
    script = (
        "import sys, weft\n"
        f"weft.load({str(file)!r}).check()\n"
        "print(sorted({'anthropic', 'google.genai', 'httpx2'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def _mapping(api: HostedApi) -> dict[str, Any]:
    return {"use": api.name, "model": "m", "api_key_env": "HOSTED_KEY"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "gemini:m", "--decode", "llada"), "no choice of decoders"),
        (("--model", "local:m", "--ignore", "seed"), "goes with anthropic:NAME"),
        (("--model", "gemini:m", "--ignore", "max_tokens"), "not 'max_tokens'"),
    ],
)
def test_wrong_options_of_commands(arguments: tuple[str, ...], words: str) -> None:
    done = CliRunner().invoke(app, ["think", "2 + 2?", *arguments])
    assert done.exit_code == 2, done.output
    assert words in " ".join(done.output.split())


AGENT = """\
name: agent
models:
  big: {{use: {use}, model: m, base_url: "{url}", options: {{ignore: [temperature]}}}}
tools: {{double: ./tools.py:double}}
nodes:
  a: {{model: big, prompt: "Double 4 and 5.", agent: parallel-react, tools: [double]}}
outputs: {{a: "{{{{ a }}}}"}}
"""
TOOLS = '''\
import weft


@weft.tool
def double(number: int) -> int:
    """Double it."""
    return 2 * number
'''


def test_an_agent_gives_signed_thoughts_back_with_the_results_of_its_calls(
    api: HostedApi, endpoints: EndpointServer, tmp_path: Path
) -> None:
    calls = [ToolCall(f"id-{n}", "double", f'{{"number": {n}}}') for n in (4, 5)]
    replies = iter(
        (
            Reply("Two calls.", reasoning="Both at once.", tool_calls=tuple(calls)),
            Reply("8 and 10"),
        )
    )
    endpoint = api.endpoint(endpoints, lambda body: api.plays(next(replies), body))
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "flow.yaml").write_text(AGENT.format(use=api.name, url=root(endpoint)))
    result = weft.load(tmp_path / "flow.yaml").run_sync()
    assert result.outputs == {"a": "8 and 10"}, result
    first, second = endpoint.requests
    turns = first.get("contents") or first["messages"]
    more = second.get("contents") or second["messages"]
    assert more[: len(turns)] == turns
    said, results = more[len(turns) :]
    assert "c2lnbmVk" in str(said)
    assert "Both at once." in str(said)
    assert [str(n) in str(part) for n, part in zip((8, 10), _parts(results), strict=True)] == [
        True,
        True,
    ]


def _parts(turn: dict[str, Any]) -> list[Any]:
    found: list[Any] = turn.get("parts") or turn["content"]
    return found
