"""Retries that users expect: HTTP clients, declared errors, delays of servers, tools of agents."""

from __future__ import annotations

import email.message
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import pytest

import weft
from weft.errors import BuildError, ModelOverloaded, ModelRequestError, ModelUnavailable
from weft.testing import FakeClock, FakeModel, MemoryJournal

FAST = {"attempts": 3, "delay": 0}


def foreign(module: str, *names: str, **attributes: Any) -> Exception:
    """An error of a library: its class `module.NAME`, with bases of the further names."""
    kind: type[Exception] = Exception
    for name in reversed(names):
        kind = type(name, (kind,), {"__module__": module})
    error = kind("no luck")
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


class Answer:
    """The answer of an HTTP server, as clients attach it to their errors."""

    def __init__(self, status: int, **headers: str) -> None:
        self.status_code = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Hostile(Exception):
    """An error whose attributes cannot be read."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("response", "status_code", "headers"):
            raise RuntimeError(name)
        return super().__getattribute__(name)


def refused(status: int) -> HTTPError:
    return HTTPError("http://x", status, "no", email.message.Message(), None)


def failing(error: Exception, times: int = 99, **settings: Any) -> tuple[Any, list[int]]:
    """A tool that raises `error` so many times, and the list of its calls."""
    calls: list[int] = []

    @weft.tool(**settings)
    async def fetch(i: int) -> str:
        """Fetch."""
        calls.append(i)
        if len(calls) <= times:
            raise error
        return "page"

    return fetch, calls


def run(
    tool: Any, clock: FakeClock | None = None, deadline_s: float | None = None, **options: Any
) -> Any:
    flow = weft.Flow("f")
    flow.output(r=flow.tool(tool, i=1, **options))
    clock = clock or FakeClock()
    return clock.run(flow.run(clock=clock, deadline=deadline_s, journal=MemoryJournal()))


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (foreign("httpx", "HTTPStatusError", "HTTPError", response=Answer(503)), 3),
        (foreign("httpx2", "HTTPStatusError", response=Answer(429)), 3),
        (foreign("httpx", "HTTPStatusError", response=Answer(404)), 1),
        (foreign("httpx", "HTTPStatusError", response=Answer(501)), 1),
        (foreign("httpx", "ConnectTimeout", "TimeoutException", "TransportError"), 3),
        (foreign("httpx", "ReadError", "NetworkError", "TransportError"), 3),
        (foreign("httpx", "UnsupportedProtocol", "TransportError"), 1),
        (foreign("requests.exceptions", "HTTPError", response=Answer(408)), 3),
        (foreign("requests.exceptions", "HTTPError", response=Answer(400)), 1),
        (foreign("requests.exceptions", "ConnectionError"), 3),
        (foreign("requests.exceptions", "SSLError", "ConnectionError"), 1),
        (foreign("aiohttp.client_exceptions", "ClientResponseError", status=425), 3),
        (foreign("aiohttp.client_exceptions", "ClientResponseError", status=401), 1),
        (
            foreign("aiohttp.client", "ServerDisconnectedError", "ClientConnectionError"),
            3,
        ),
        (refused(502), 3),
        (refused(403), 1),
        (URLError(ConnectionRefusedError("refused")), 3),
        (URLError("unknown url type"), 1),
        (foreign("mine", "ConnectionError"), 1),
        (foreign("mine", "Busy", status=503), 1),
        (Hostile("no"), 1),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_errors_of_http_clients(error: Exception, attempts: int) -> None:
    tool, calls = failing(error)
    result = run(tool, retry=FAST)
    assert result.status == "failed"
    assert len(calls) == attempts


def test_the_real_clients_are_recognised_without_being_imported() -> None:
    httpx2 = pytest.importorskip("httpx2")
    answer = httpx2.Response(503, request=httpx2.Request("GET", "http://x"))
    tool, calls = failing(httpx2.HTTPStatusError("no", request=answer.request, response=answer))
    run(tool, retry=FAST)
    tool, timeouts = failing(httpx2.ReadTimeout("slow"))
    run(tool, retry=FAST)
    assert (len(calls), len(timeouts)) == (3, 3)
    code = "import sys, weft.core.foreign; print(sorted({'httpx', 'httpx2'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Busy(Exception):
    pass


class VeryBusy(Busy):
    pass


@pytest.mark.parametrize(
    "declared", [Busy, [Busy], "tests.workflow.test_retry.Busy", [KeyError, Busy]], ids=repr
)
def test_declared_exceptions_are_retried(declared: Any) -> None:
    for options in ({"retry": FAST, "retry_on": declared},):
        tool, calls = failing(VeryBusy("later"), times=2)
        assert run(tool, **options).outputs == {"r": "page"}
        assert len(calls) == 3
        tool, calls = failing(VeryBusy("later"), times=2, **options)
        assert run(tool).outputs == {"r": "page"}
        assert len(calls) == 3
    tool, calls = failing(ValueError("a bug"))
    run(tool, retry=FAST, retry_on=declared)
    assert len(calls) == 1


def test_a_declared_status_is_retried() -> None:
    error = foreign("httpx", "HTTPStatusError", response=Answer(409))
    tool, calls = failing(error, times=1, retry_on=409)
    assert run(tool).outputs == {"r": "page"}
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("declared", "message"),
    [("KeyEror", "did you mean KeyError"), (200, "400 to 599"), (int, "no class of exceptions")],
)
def test_what_names_no_error_is_refused(declared: Any, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        failing(Busy(), retry_on=declared)
    flow = weft.Flow("f")
    with pytest.raises(BuildError, match=message):
        flow.call(failing, retry_on=declared)


def test_unknown_settings_of_a_retry_are_refused() -> None:
    with pytest.raises(BuildError, match="did you mean 'attempts'"):
        failing(Busy(), retry={"atempts": 3})
    with pytest.raises(BuildError, match="at least 1"):
        failing(Busy(), retry=0)


def test_a_call_of_a_plain_function_is_retried_too() -> None:
    calls: list[int] = []

    def fetch() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise VeryBusy("later")
        return "page"

    flow = weft.Flow("f")
    flow.output(r=flow.call(fetch, retry=FAST, retry_on=Busy))
    assert flow.run_sync().outputs == {"r": "page"}


def test_files_declare_it_by_dotted_names_and_statuses(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "import pathlib\n\nimport weft\n\nhere = pathlib.Path(__file__).parent\n\n\n"
        "class Busy(Exception):\n    pass\n\n\n@weft.tool\ndef fetch(isolated: bool) -> str:\n"
        "    '''Fetch.'''\n    calls = here / f'calls_{isolated}'\n"
        "    with calls.open('a') as file:\n        file.write('x')\n"
        "    if len(calls.read_text()) < 3:\n        raise LookupError('later')\n"
        "    return 'page'\n"
    )
    (tmp_path / "f.yaml").write_text(
        "name: f\ntools:\n  plain: ./tools.py:fetch\n  apart:\n    use: ./tools.py:fetch\n"
        "    isolate: {timeout: 60s}\n    retry: {attempts: 3, delay: 0}\n"
        "    retry_on: [LookupError, 409]\nnodes:\n"
        "  a: {tool: plain, with: {isolated: false}, retry: {attempts: 3, delay: 0},"
        " retry_on: LookupError}\n  b: {tool: apart, with: {isolated: true}}\n"
        "outputs: {r: ['{{ a }}', '{{ b }}']}\n"
    )
    result = weft.load(tmp_path / "f.yaml").run_sync()
    assert result.outputs == {"r": ["page", "page"]}, result.missing


def test_a_misspelt_exception_in_a_file_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text("name: f\nnodes:\n  a:\n    value: 1\n    retry_on: [KeyEror]\noutputs: {}\n")
    with pytest.raises(BuildError, match=r"f.yaml:5:\d+: .*KeyEror: did you mean KeyError"):
        weft.load(file).check()


@pytest.mark.parametrize("header", ["7", None], ids=["seconds", "date"])
def test_retry_after_is_honoured(header: str | None) -> None:
    moment = datetime.now(UTC) + timedelta(seconds=100)
    after = header or format_datetime(moment, usegmt=True)
    error = foreign("httpx", "HTTPStatusError", response=Answer(503, retry_after=after))
    tool, calls = failing(error, times=1)
    clock = FakeClock()
    assert run(tool, clock, retry=2).outputs == {"r": "page"}
    assert len(calls) == 2
    assert clock.now() == pytest.approx(7.0 if header else 99.0, abs=2.0)


def test_a_delay_beyond_the_deadline_ends_the_node_at_once_with_its_own_error() -> None:
    error = foreign("httpx", "HTTPStatusError", response=Answer(503, retry_after="90"))
    tool, calls = failing(error, times=1)
    clock = FakeClock()
    result = run(tool, clock, deadline_s=30.0, retry=3)
    assert (result.status, len(calls), clock.now()) == ("failed", 1, pytest.approx(0.0))
    assert "HTTPStatusError" in result.missing["r"]


def once(error: Exception, **options: Any) -> tuple[Any, list[int]]:
    calls: list[int] = []

    @weft.tool(effect="once", **options)
    async def pay(i: int) -> str:
        """Pay."""
        calls.append(i)
        raise error

    return pay, calls


@pytest.mark.parametrize("error", [Busy("?"), TimeoutError("?"), ConnectionResetError("?")])
def test_a_call_that_must_not_be_repeated_is_not(error: Exception) -> None:
    pay, calls = once(error, retry=FAST, retry_on=Exception)
    result = run(pay)
    assert (result.status, len(calls)) == ("failed", 1)
    assert "nobody knows whether pay was carried out" in str(result.missing)


MODEL_ERRORS: list[tuple[Callable[[], Exception], int]] = [
    (lambda: ModelOverloaded("429"), 3),
    (lambda: ModelUnavailable("503"), 3),
    (lambda: ModelRequestError("400"), 1),
]


@pytest.mark.parametrize(("error", "attempts"), MODEL_ERRORS)
def test_models_are_retried_by_default(error: Callable[[], Exception], attempts: int) -> None:
    asked: list[int] = []

    def answer(_: object) -> str:
        asked.append(1)
        raise error()

    flow = weft.Flow("f", models={"m": FakeModel(answer)})
    flow.output(r=flow.model("m", "hi"))
    clock = FakeClock()
    result = clock.run(flow.run(clock=clock))
    assert (result.status, len(asked)) == ("failed", attempts)
    assert clock.now() <= 0.55 + 1.1
    flow = weft.Flow("f", models={"m": FakeModel(answer)})
    flow.output(r=flow.model("m", "hi", retry=1))
    asked.clear()
    clock.run(flow.run(clock=clock))
    assert len(asked) == 1


def test_delays_grow_are_bounded_and_depend_on_the_seed() -> None:
    def delays(seed: int) -> list[float]:
        model = FakeModel(lambda _: (_ for _ in ()).throw(ModelOverloaded("429")))
        flow = weft.Flow("f", models={"m": model})
        flow.output(r=flow.model("m", "hi", retry={"attempts": 6, "max_delay": 3}))
        clock, events = FakeClock(), []
        clock.run(flow.run(clock=clock, seed=seed, listeners=[events.append]))
        return [event.delay_s for event in events if type(event).__name__ == "NodeRetrying"]

    first = delays(1)
    assert first == delays(1) != delays(2)
    assert [round(delay) for delay in first[1:]] == [1, 2, 3, 3]
    assert max(first) <= 3 * 1.1


def test_a_flaky_tool_of_an_agent_is_retried_by_its_declaration() -> None:
    timeout = foreign("httpx", "ReadTimeout", "TimeoutException")
    tool, calls = failing(timeout, times=2, retry=FAST)
    script = [
        '{"thought": "look", "next": {"call": {"name": "fetch", "arguments": {"i": 1}}}}',
        '{"thought": "so", "next": {"answer": "page"}}',
    ]
    flow = weft.Flow("f", models={"m": FakeModel(script)})
    flow.output(r=flow.model("m", "what is there?", tools=[tool], agent="react"))
    events: list[Any] = []
    clock = FakeClock()
    result = clock.run(flow.run(clock=clock, listeners=[events.append]))
    assert (result.outputs, len(calls)) == ({"r": "page"}, 3), result.missing
    retrying = [event for event in events if type(event).__name__ == "NodeRetrying"]
    assert [event.attempt for event in retrying] == [1, 2]
    ended = [event for event in events if type(event).__name__ == "NodeFinished"]
    assert [event.outcome.attempts for event in ended if event.node.endswith("/s1")] == [3]
