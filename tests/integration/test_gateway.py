"""The official OpenAI client against `weft gateway`: a conformance script, on real processes.

The models behind the workflows are fakes that leave a trace of what they are doing in files, so
that what a disconnected client leaves running can be seen from outside.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from typer.testing import CliRunner

from weft.cli.main import app

PATIENCE_S = 120.0
KEY = "integration-key-0123456789"
HELLO: Any = [{"role": "user", "content": "Hello"}]
MODELS = '''
"""Models that answer as they are told, and say in a file how many of them are at work."""

import asyncio
import os
from pathlib import Path

from weft.core.errors import ModelOverloaded, ModelUnavailable
from weft.testing import FakeModel, Reply

REPLIES = {
    "echo": lambda said: Reply(said, per_token_s=0.002),
    "slow": lambda said: Reply("tick " * 1000, first_token_s=0.05, per_token_s=0.05),
    "late": lambda said: Reply("late but whole"),
    "busy": lambda said: Reply(error=ModelOverloaded("secret address", retry_after_s=3)),
    "broken": lambda said: Reply("one two three", break_after_tokens=2),
}


class Traced(FakeModel):
    async def generate(self, request):
        trace = Path("running")
        while self.model == "late" and not Path("go").exists():
            await asyncio.sleep(0.01)
        try:
            async for event in super().generate(request):
                trace.write_text(str(self.running))
                yield event
        finally:
            trace.write_text(str(self.running))


def make(model: str):
    return Traced(lambda request: REPLIES[model](request.messages[-1].content), model=model)
'''
FLOW = """
name: {name}
description: A test.
inputs: {{question: string, tone: {{type: string, default: "", description: Before the question.}}}}
models: {{m: {{use: "./models.py:make", model: {model}}}}}
nodes:
  draft: {{model: m, prompt: "{{{{ tone }}}}{{{{ question }}}}"}}
outputs: {{answer: "{{{{ draft }}}}"}}
"""
FAILING = """
name: failing
inputs: {question: string}
nodes:
  first: {value: "{{ 1 / (question | length - 5) }}"}
  second: {value: "{{ first }}"}
outputs: {answer: "{{ second }}"}
"""


def written(folder: Path) -> Path:
    (folder / "models.py").write_text(MODELS)
    for name in ("echo", "slow", "late", "busy", "broken"):
        (folder / f"{name}.yaml").write_text(FLOW.format(name=name, model=name))
    (folder / "failing.yaml").write_text(FAILING)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path)


class Served:
    """A `weft gateway` in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], url: str, folder: Path) -> None:
        self.process = process
        self.url = url
        self.folder = folder

    @property
    def ready(self) -> bool:
        root = self.url.removesuffix("/v1")
        asked = httpx2.get(root + "/readyz", trust_env=False, timeout=PATIENCE_S)
        return asked.status_code == 200

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; the exit status, and everything it said on stderr."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, said


@contextmanager
def gateway(folder: Path, *words: str) -> Iterator[Served]:
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", "gateway", *words, "--port", "0"],
        cwd=folder,
        env={**os.environ, "WEFT_KEYS": KEY, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            pytest.fail(f"it did not start: {process.communicate()[1]}")
        yield Served(process, line.split()[-1], folder)
    finally:
        process.kill()
        process.communicate()


@asynccontextmanager
async def client(served: Served, key: str = "none") -> AsyncIterator[AsyncOpenAI]:
    options = {"max_retries": 0, "timeout": PATIENCE_S}
    async with AsyncOpenAI(base_url=served.url, api_key=key, **options) as made:
        yield made


def script(served: Served, body: Callable[[AsyncOpenAI], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S), client(served) as made:
            await body(made)

    asyncio.run(main())


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():
            await asyncio.sleep(0.005)


def counter(served: Served, name: str) -> float:
    page = served.url.removesuffix("/v1") + "/metrics"
    text = httpx2.get(page, trust_env=False, timeout=PATIENCE_S).text
    return sum(float(line.split()[-1]) for line in text.split("\n") if line.startswith(name))


def counted(served: Served, name: str, wanted: float) -> None:
    """Wait until a counter has come so far: a client may know of an end a little earlier."""
    patience = iter(range(6_000))
    while counter(served, name) < wanted:
        assert next(patience, None) is not None, f"{name} stays below {wanted}"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One gateway for the whole script."""
    folder = written(tmp_path_factory.mktemp("house"))
    files = ("echo.yaml", "slow.yaml", "busy.yaml", "broken.yaml", "failing.yaml")
    with gateway(folder, *files, "--max-concurrent", "64", "--max-waiting", "64") as served:
        yield served
        code, said = served.end()
        assert code == 0
        assert "Traceback" not in said


def test_models_are_listed(house: Served) -> None:
    async def body(api: AsyncOpenAI) -> None:
        listed = [model.id async for model in api.models.list()]
        assert listed == ["echo", "slow", "busy", "broken", "failing"]
        assert (await api.models.retrieve("echo")).owned_by == "weft"

    script(house, body)


def test_a_whole_answer(house: Served) -> None:
    async def body(api: AsyncOpenAI) -> None:
        answer = await api.chat.completions.create(
            model="echo",
            messages=[{"role": "system", "content": "Be kind."}, *HELLO],
            extra_body={"inputs": {"tone": "kindly: "}},
            extra_headers={"x-request-id": "mine-1"},
            temperature=0.5,
            max_tokens=50,
            user="me",
        )
        assert answer.choices[0].message.content == "kindly: Hello"
        assert answer.choices[0].finish_reason == "stop"
        assert answer.usage is not None
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (2, 2)
        assert answer._request_id == "mine-1"

    script(house, body)


def test_a_stream_of_two_choices_with_usage(house: Served) -> None:
    async def body(api: AsyncOpenAI) -> None:
        stream = await api.chat.completions.create(
            model="echo",
            messages=[{"role": "user", "content": "one two three ünï 🎉"}],
            stream=True,
            stream_options={"include_usage": True},
            n=2,
        )
        texts, usage, pieces = {0: "", 1: ""}, None, 0
        async for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                texts[choice.index] += choice.delta.content or ""
                pieces += bool(choice.delta.content)
        assert texts == dict.fromkeys((0, 1), "one two three ünï 🎉")
        assert pieces == 10
        assert usage is not None
        assert usage.completion_tokens == 10

    script(house, body)


def test_the_stream_helper(house: Served) -> None:
    async def body(api: AsyncOpenAI) -> None:
        async with api.chat.completions.stream(model="echo", messages=HELLO) as stream:
            final = await stream.get_final_completion()
        assert final.choices[0].message.content == "Hello"

    script(house, body)


def refusal(
    house: Served, kind: type[openai.APIStatusError], **fields: Any
) -> openai.APIStatusError:
    """The error for a request that is refused."""
    asked: dict[str, Any] = {"model": "echo", "messages": HELLO, **fields}
    with (
        OpenAI(base_url=house.url, api_key="none", max_retries=0, timeout=PATIENCE_S) as api,
        pytest.raises(kind) as raised,
    ):
        api.chat.completions.create(**asked)
    assert raised.value.request_id
    assert raised.value.type
    return raised.value


TOOL = {"type": "function", "function": {"name": "t", "parameters": {}}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"extra_body": {"inputs": {"tone": 4}}}, "invalid_inputs", None),
        ({"extra_body": {"inputs": {"other": 4}}}, "invalid_inputs", None),
        ({"tools": [TOOL]}, "unsupported", None),
        ({"response_format": FORMAT}, "unsupported", None),
        ({"logprobs": True}, "unsupported", "logprobs"),
        ({"temperature": 9}, "invalid_value", "temperature"),
        ({"messages": []}, "invalid_value", "messages"),
        ({"messages": [{"role": "system", "content": "x"}]}, "invalid_inputs", None),
    ],
)
def test_bad_requests(house: Served, fields: dict[str, Any], code: str, param: str | None) -> None:
    error = refusal(house, openai.BadRequestError, **fields)
    assert (error.code, error.param) == (code, param)


def test_a_model_that_is_not_there(house: Served) -> None:
    error = refusal(house, openai.NotFoundError, model="other")
    assert (error.code, error.param) == ("model_not_found", "model")


def test_a_busy_model(house: Served) -> None:
    error = refusal(house, openai.RateLimitError, model="busy")
    assert int(error.response.headers["retry-after"]) >= 1
    assert "draft" in error.message
    assert "secret" not in error.message


def test_a_workflow_that_fails_names_the_node_and_no_more(house: Served) -> None:
    error = refusal(house, openai.InternalServerError, model="failing")
    assert error.status_code == 500
    assert "first: it failed" in error.message
    assert "zero" not in error.message


def test_an_answer_that_takes_too_long(house: Served) -> None:
    headers = {"x-weft-timeout-ms": "100"}
    error = refusal(house, openai.InternalServerError, model="slow", extra_headers=headers)
    assert (error.status_code, error.code) == (504, "timeout")


def test_a_large_body(house: Served) -> None:
    large = [{"role": "user", "content": "x" * 5_000_000}]
    error = refusal(house, openai.APIStatusError, messages=large)
    assert (error.status_code, error.code) == (413, "request_too_large")
    fits: Any = [{"role": "user", "content": "x" * 1_000_000}]
    with OpenAI(base_url=house.url, api_key="none") as api:
        answer = api.chat.completions.create(model="echo", messages=fits)
    assert answer.choices[0].message.content == fits[0]["content"]


def test_a_stream_that_breaks(house: Served) -> None:
    with OpenAI(base_url=house.url, api_key="none", max_retries=0, timeout=PATIENCE_S) as api:
        stream = api.chat.completions.create(model="broken", messages=HELLO, stream=True)
        with pytest.raises(openai.APIError, match="broke off"):
            for _ in stream:
                pass


def test_hanging_up_ends_the_run(house: Served) -> None:
    def running(wanted: str) -> Callable[[], bool]:
        return lambda: (house.folder / "running").read_text() == wanted

    async def body(api: AsyncOpenAI) -> None:
        stream = await api.chat.completions.create(model="slow", messages=HELLO, stream=True)
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await until(running("1"))
        await stream.close()
        await until(running("0"))
        task = asyncio.create_task(api.chat.completions.create(model="slow", messages=HELLO))
        await until(running("1"))
        task.cancel()
        await asyncio.wait([task])
        await until(running("0"))
        disconnected(2)
        patience = iter(range(30))  # one that gives up before it is heard leaves nothing behind
        while counter(house, "weft_gateway_disconnects_total") < before + 3:
            assert next(patience, None) is not None
            with pytest.raises(openai.APITimeoutError):
                await api.chat.completions.create(model="slow", messages=HELLO, timeout=2)
            await until(running("0"))
        await until(lambda: counter(house, "weft_gateway_running") == 0)

    def disconnected(clients: int) -> None:
        counted(house, "weft_gateway_disconnects_total", before + clients)

    before = counter(house, "weft_gateway_disconnects_total")
    script(house, body)


def test_64_clients_at_once(house: Served) -> None:
    async def one(number: int) -> str:
        said: Any = [{"role": "user", "content": f"client number {number} of sixty four"}]
        async with client(house) as api:
            stream = await api.chat.completions.create(model="echo", messages=said, stream=True)
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
            whole = await api.chat.completions.create(model="echo", messages=said)
        assert whole.choices[0].message.content == text
        return text

    async def body(_: AsyncOpenAI) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(number)) for number in range(64)]
        assert [task.result() for task in tasks] == [
            f"client number {number} of sixty four" for number in range(64)
        ]

    script(house, body)


def test_the_operator_learns_what_clients_are_not_told(folder: Path) -> None:
    with gateway(folder, "failing.yaml", "busy.yaml", "--no-warm") as served:
        refusal(served, openai.InternalServerError, model="failing")
        refusal(served, openai.RateLimitError, model="busy")
        code, said = served.end()
    assert code == 0
    assert "division by zero" in said
    assert "secret address" in said


def test_the_plain_client_and_its_retries(folder: Path) -> None:
    with gateway(folder, "echo.yaml", "slow.yaml", "--max-concurrent", "1", "-q") as served:
        with OpenAI(base_url=served.url + "/", api_key="none") as api:
            answer = api.chat.completions.create(model="echo", messages=HELLO)
            assert answer.choices[0].message.content == "Hello"
            counted(served, "weft_gateway_requests_total", 1)
            with pytest.raises(openai.InternalServerError):
                api.chat.completions.create(
                    model="slow", messages=HELLO, extra_headers={"x-weft-timeout-ms": "100"}
                )
            # A run that took too long is not run again.
            counted(served, "weft_gateway_requests_total", 2)
            assert counter(served, "weft_gateway_requests_total") == 2
            assert counter(served, "weft_runs_total") >= 1
        assert served.end()[1].count("\n") <= 2


def test_keys(folder: Path) -> None:
    with gateway(folder, "echo.yaml", "--api-key-env", "WEFT_KEYS") as served:
        for key in ("none", KEY[:-1]):
            with OpenAI(base_url=served.url, api_key=key, max_retries=0, timeout=PATIENCE_S) as api:
                with pytest.raises(openai.AuthenticationError) as raised:
                    api.chat.completions.create(model="echo", messages=HELLO)
                assert raised.value.code == "invalid_api_key"
        with OpenAI(base_url=served.url, api_key=KEY) as api:
            assert api.chat.completions.create(model="echo", messages=HELLO).choices
        _, said = served.end()
    assert KEY not in said


def test_the_end_waits_for_answers_and_refuses_new_ones(folder: Path) -> None:
    async def main(served: Served) -> None:
        async with client(served) as api:
            task = asyncio.create_task(api.chat.completions.create(model="late", messages=HELLO))
            await until(lambda: counter(served, "weft_gateway_running") == 1)
            served.process.send_signal(signal.SIGINT)
            await until(lambda: not served.ready)
            with pytest.raises(openai.InternalServerError) as raised:
                await api.chat.completions.create(model="late", messages=HELLO)
            assert raised.value.status_code == 503
            (folder / "go").touch()
            assert (await task).choices[0].message.content == "late but whole"

    with gateway(folder, "late.yaml") as served:
        asyncio.run(main(served))
        assert served.process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(("signals", "drain"), [(1, "10ms"), (2, "60s")])
def test_the_end_cuts_off_what_takes_too_long(folder: Path, signals: int, drain: str) -> None:
    async def main(served: Served) -> None:
        async with client(served) as api:
            stream = await api.chat.completions.create(model="slow", messages=HELLO, stream=True)
            assert await anext(aiter(stream))
            served.process.send_signal(signal.SIGTERM)
            if signals == 2:
                await until(lambda: not served.ready)
                served.process.send_signal(signal.SIGTERM)
            with pytest.raises((openai.APIError, httpx2.TransportError)):
                async for _ in stream:
                    pass

    with gateway(folder, "slow.yaml", "--drain", drain) as served:
        asyncio.run(main(served))
        assert served.process.wait(PATIENCE_S) == 130


def test_two_gateways_at_once_and_one_is_killed(folder: Path) -> None:
    with gateway(folder, "echo.yaml") as one, gateway(folder, "echo.yaml") as other:
        assert one.url != other.url
        port = int(one.url.split(":")[2].removesuffix("/v1"))
        one.process.send_signal(signal.SIGKILL)
        one.process.wait(PATIENCE_S)
        with OpenAI(base_url=other.url, api_key="none") as api:
            assert api.chat.completions.create(model="echo", messages=HELLO).choices
        with socket.create_server(("127.0.0.1", port)):
            pass


def failed(*words: str) -> tuple[int, str]:
    shown = CliRunner().invoke(app, ["gateway", *words], env={"SHORT": "abc"})
    assert shown.stdout == ""
    assert isinstance(shown.exception, SystemExit)
    return shown.exit_code, shown.stderr


def test_what_cannot_be_served_is_said_at_the_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "asks.yaml").write_text(
        "name: asks\ninputs: {q: string}\nnodes: {a: {ask: Sure?}}\noutputs: {a: '{{ a }}'}\n"
    )
    (folder / "wrong.yaml").write_text("name: wrong\nnodez: {}\n")
    code, said = failed("echo.yaml", "wrong.yaml")
    assert (code, "wrong.yaml:2" in said) == (2, True)
    code, said = failed("echo.yaml", "asks.yaml")
    assert (code, "asks a person" in said) == (2, True)
    code, said = failed("echo.yaml", "echo.yaml")
    assert (code, "two workflows are called 'echo'" in said) == (2, True)
    code, said = failed("echo.yaml", "--host", "0.0.0.0")
    assert (code, "there are no keys" in said) == (2, True)
    code, said = failed("echo.yaml", "--api-key-env", "SHORT")
    assert (code, "fewer than 16" in said, "abc" in said) == (2, True, False)
    code, said = failed("echo.yaml", "--max-body", "much")
    assert (code, "--max-body" in said) == (2, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, said = failed("echo.yaml", "--port", str(taken.getsockname()[1]))
    assert (code, "cannot listen" in said) == (1, True)
