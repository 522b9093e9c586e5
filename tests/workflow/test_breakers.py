"""Circuit breakers of tools and models: what counts, who is told, how a workflow goes on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.workflow.test_retry import Answer, foreign
from weft.core.events import BreakerChanged, NodeRerouted, NodeRetrying, NodeStarted
from weft.errors import (
    BuildError,
    ModelOutputError,
    ModelRequestError,
    ModelTimeout,
    ModelUnavailable,
    SourceError,
    ToolArgumentError,
    ToolRaised,
)
from weft.testing import FakeClock, FakeModel, FakeTools, MemoryJournal, Reply

FEW = weft.Breaker(failures=3, within_s=300, after_s=60, successes=2)


class Server:
    """A tool that is down until a time of the clock, and the times of its calls."""

    def __init__(self, clock: FakeClock, up_s: float, error: Callable[[], Exception]) -> None:
        self.calls: list[float] = []

        async def fetch(i: int) -> int:
            """Fetch."""
            self.calls.append(clock.now())
            await asyncio.sleep(0.5)
            if clock.now() < up_s:
                raise error()
            return i

        self.fetch = fetch


def lost() -> Exception:
    return ConnectionError("refused")


def one_by_one(tool: Any, many: int, breaker: Any = FEW, **options: Any) -> weft.Flow:
    """Calls `tool` again and again; a failure is 0."""
    flow = weft.Flow("f", tools={"fetch": {"use": tool, "breaker": breaker}})
    options = {"default": 0, **options}
    flow.output(r=flow.map(range_of(many), lambda i: flow.tool("fetch", i=i, **options), width=1))
    return flow


def range_of(many: int) -> list[int]:
    return list(range(1, many + 1))


def changes(events: list[Any]) -> list[tuple[str, float]]:
    return [(each.state, each.at_s) for each in events if isinstance(each, BreakerChanged)]


def test_an_open_breaker_makes_no_call_until_its_time() -> None:
    clock, events = FakeClock(), list[Any]()
    server = Server(clock, 40.0, lost)
    retry = {"attempts": 4, "delay": 1, "jitter": 0}
    flow = one_by_one(server.fetch, 6, retry=retry, timeout=5)
    result = clock.run(flow.run(clock=clock, listeners=[events.append]))
    assert result.outputs == {"r": [1, 2, 3, 4, 5, 6]}
    assert server.calls[:3] == [0.0, 1.5, 4.0]  # the last of them opens it
    assert server.calls[3] == pytest.approx(64.5, abs=0.01)  # `after`, not the retry's delay
    assert [state for state, _ in changes(events)] == ["open", "half-open", "closed"]
    assert changes(events)[0][1] == 4.5
    waited = [each.delay_s for each in events if isinstance(each, NodeRetrying)]
    assert waited == [1.0, 2.0, 60.0], "the last until the breaker lets a call through"


def test_a_refusal_says_what_since_when_and_until_when() -> None:
    clock = FakeClock()
    server = Server(clock, 1e9, lost)
    flow = weft.Flow("f", tools={"fetch": {"use": server.fetch, "breaker": FEW}})
    first = flow.map([1, 2, 3, 4], lambda i: flow.tool("fetch", i=i, on_failure="skip"), width=1,
                     mode="best_effort", otherwise=0)  # fmt: skip
    flow.output(r=first)
    result = clock.run(flow.run(clock=clock))
    assert len(server.calls) == 3
    *_, last = (each.failure for each in result.outcomes.values() if each.status == "failed")
    assert last is not None
    assert (last.error, last.stage, last.retryable) == ("ToolBreakerOpen", "tool", True)
    assert last.message == (
        "the tool `fetch` is not called: its circuit breaker is open since "
        "2000-01-01T00:00:01+00:00; the next call is tried in 60 s"
    )


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (ConnectionError("refused"), True),
        (TimeoutError("late"), True),
        (KeyError("a bug of the tool"), True),
        (weft.NotDone("not connected"), True),
        (foreign("httpx", "HTTPStatusError", response=Answer(503)), True),
        (foreign("httpx", "HTTPStatusError", response=Answer(501)), True),
        (foreign("httpx", "HTTPStatusError", response=Answer(429)), True),
        (foreign("httpx", "HTTPStatusError", response=Answer(404)), False),
        (foreign("httpx", "HTTPStatusError", response=Answer(422)), False),
        (ToolArgumentError("no such city"), False),
        (ToolRaised("the tool says so"), True),
        (ModelUnavailable("a model that the tool asks"), True),
    ],
    ids=lambda value: str(value)[:30],
)
def test_only_faults_of_the_tool_count(error: Exception, counts: bool) -> None:
    clock = FakeClock()
    server = Server(clock, 1e9, lambda: error)
    clock.run(one_by_one(server.fetch, 8).run(clock=clock))
    assert len(server.calls) == (3 if counts else 8)


def test_arguments_that_do_not_fit_do_not_count() -> None:
    clock = FakeClock()
    server = Server(clock, 0.0, lost)
    flow = weft.Flow("f", tools={"fetch": {"use": server.fetch, "breaker": 1}})
    bad = flow.map(
        ["x", "y"], lambda i: flow.tool("fetch", i=flow.call(anything, i), default=0), width=1
    )
    flow.output(r=flow.tool("fetch", i=7, after=bad), bad=bad)
    result = clock.run(flow.run(clock=clock))
    assert result.outputs == {"r": 7, "bad": [0, 0]}


def anything(value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (ModelUnavailable("down"), True),
        (ModelTimeout("late"), True),
        (ModelRequestError("no such parameter"), False),
        (ModelOutputError("no JSON"), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_only_faults_of_the_model_count(error: Any, counts: bool) -> None:
    clock = FakeClock()
    model = FakeModel(lambda _: Reply(error=error))
    flow = weft.Flow("f", models={"m": {"use": model, "breaker": FEW}})
    flow.output(
        r=flow.map(range_of(8), lambda _: flow.model("m", "hi", default="", retry=1), width=1)
    )
    clock.run(flow.run(clock=clock))
    assert len(model.requests) == (3 if counts else 8)


def hanging(clock: FakeClock) -> tuple[Any, list[float]]:
    calls: list[float] = []

    async def fetch(i: int) -> int:
        """Fetch."""
        calls.append(clock.now())
        await asyncio.sleep(1e6)
        return i

    return fetch, calls


def test_the_time_limit_of_a_node_counts() -> None:
    clock, events = FakeClock(), list[Any]()
    fetch, calls = hanging(clock)
    flow = one_by_one(fetch, 6, timeout=2)
    clock.run(flow.run(clock=clock, listeners=[events.append]))
    assert calls == [0.0, 2.0, 4.0]
    assert changes(events) == [("open", 6.0)]


def test_the_time_limit_of_a_model_node_counts() -> None:
    clock = FakeClock()
    model = FakeModel([Reply("late", first_token_s=100.0)])
    flow = weft.Flow("f", models={"m": {"use": model, "breaker": FEW}})
    asked = lambda _: flow.model("m", "hi", default="", timeout=2, retry=1)  # noqa: E731
    flow.output(r=flow.map(range_of(6), asked, width=1))
    clock.run(flow.run(clock=clock))
    assert len(model.requests) == 3


def test_calls_that_nobody_needs_any_more_do_not_count() -> None:
    clock, events = FakeClock(), list[Any]()
    fetch, calls = hanging(clock)
    flow = weft.Flow("f", tools={"fetch": {"use": fetch, "breaker": 1}})

    def race(_: Any) -> Any:
        quick = flow.value("quick")
        return flow.join(flow.tool("fetch", i=1), quick, mode="any")

    flow.output(r=flow.map([1, 2, 3], race, width=1))
    result = clock.run(flow.run(clock=clock, listeners=[events.append]))
    assert result.outputs == {"r": ["quick"] * 3}
    assert len(calls) == 3
    assert not changes(events)


def test_a_person_who_cancels_does_not_open_it() -> None:
    clock, events = FakeClock(), list[Any]()
    fetch, calls = hanging(clock)
    flow = one_by_one(fetch, 1, breaker=1)

    async def main() -> None:
        for _ in range(2):
            run = flow.start(clock=clock, listeners=[events.append])
            waiting = asyncio.ensure_future(run.wait())
            await clock.sleep(1)
            run.cancel()
            await waiting

    clock.run(main())
    assert len(calls) == 2
    assert not changes(events)


def test_one_call_at_a_time_is_tried_and_others_are_refused() -> None:
    clock, events = FakeClock(), list[Any]()
    server = Server(clock, 30.0, lost)
    flow = weft.Flow("f", tools={"fetch": {"use": server.fetch, "breaker": FEW}})
    retry = {"attempts": 40, "delay": 1, "factor": 1, "jitter": 0}
    flow.output(r=flow.map(range_of(20), lambda i: flow.tool("fetch", i=i, retry=retry)))
    result = clock.run(flow.run(clock=clock, listeners=[events.append]))
    assert result.outputs == {"r": range_of(20)}, "none is lost"
    half_open, closed = (changes(events)[at][1] for at in (1, 2))
    tried = [at for at in server.calls if half_open <= at < closed]
    assert len(tried) == 2, "one after another, as many as close it"
    assert tried[1] - tried[0] >= 0.5
    assert not [at for at in server.calls if 0.5 < at < half_open]


def test_runs_of_a_process_share_it_and_other_workflows_do_not() -> None:
    clock = FakeClock()
    server = Server(clock, 1e9, lost)
    flow = one_by_one(server.fetch, 3)

    async def main() -> None:
        await flow.run(clock=clock)
        assert len(server.calls) == 3
        await flow.run(clock=clock)
        assert len(server.calls) == 3
        other = weft.Flow("other", tools={"fetch": {"use": server.fetch, "breaker": FEW}})
        other.output(r=other.tool("fetch", i=1, default=0))
        await other.run(clock=clock)
        assert len(server.calls) == 4
        await flow.run(clock=FakeClock())
        assert len(server.calls) == 7, "another clock, another time"

    clock.run(main())


FILE = """
name: f
models:
  main: {use: openai, model: m, base_url: "http://127.0.0.1:9/v1", breaker: %s}
  spare: local:smollm2-135m-instruct
  auto: {use: route, among: {main: {loss: 0.1}, spare: {loss: 0.5}}}
tools:
  fetch: {use: "./tools.py:fetch", breaker: %s}
  other: ./tools.py:fetch
nodes:
%s
outputs: {r: "{{ last }}"}
"""
TOOLS = '''
import weft


@weft.tool
def fetch(i: int) -> int:
    """Fetch."""
    return i
'''


def from_file(folder: Path, nodes: str, breaker: str = "{failures: 2, within: 5m}") -> weft.Flow:
    (folder / "tools.py").write_text(TOOLS, "utf-8")
    return weft.loads(FILE % (breaker, breaker, nodes), str(folder / "f.yaml"))


def down(**_: Any) -> Any:
    raise ConnectionError("refused")


def test_a_fallback_runs_at_once(tmp_path: Path) -> None:
    nodes = """
  last:
    map: [1, 2, 3, 4]
    width: 1
    do:
      nodes:
        a: {tool: fetch, with: {i: "{{ item }}"}, fallback: instead}
        instead: {value: 0}
      result: "{{ a }}"
"""
    tools, clock, events = FakeTools(fetch=down), FakeClock(), list[Any]()
    flow = from_file(tmp_path, nodes)
    result = clock.run(flow.run(tools=tools, clock=clock, listeners=[events.append]))
    assert result.outputs == {"r": [0, 0, 0, 0]}
    assert len(tools.calls) == 2
    rerouted = [each.failure.error for each in events if isinstance(each, NodeRerouted)]
    assert rerouted == ["ToolRaised", "ToolRaised", "ToolBreakerOpen", "ToolBreakerOpen"]


def test_alternatives_see_a_refusal_like_any_failure(tmp_path: Path) -> None:
    nodes = """
  last:
    map: [1, 2, 3, 4]
    width: 1
    do: {tool: fetch, with: {i: "{{ item }}"}, alternatives: [{tool: other, cost: 99}]}
"""
    tools, clock = FakeTools(fetch=down, other=lambda i: i), FakeClock()
    result = clock.run(from_file(tmp_path, nodes).run(tools=tools, clock=clock))
    assert result.outputs == {"r": [1, 2, 3, 4]}
    assert [name for name, _ in tools.calls].count("fetch") == 2


def test_a_route_goes_on_to_the_next_model(tmp_path: Path) -> None:
    nodes = "  last: {map: [1, 2, 3, 4], width: 1, do: {model: auto, prompt: hi}}"
    main, spare = FakeModel([Reply(error=ModelUnavailable("down"))]), FakeModel(["spare"])
    flow, clock = from_file(tmp_path, nodes), FakeClock()
    result = clock.run(flow.run(models={"main": main, "spare": spare}, clock=clock))
    assert result.outputs == {"r": ["spare"] * 4}
    assert (len(main.requests), len(spare.requests)) == (2, 4)


def test_a_model_call_without_a_retry_of_its_own_waits_too(tmp_path: Path) -> None:
    clock = FakeClock()
    model = FakeModel(lambda _: Reply("up") if clock.now() > 50 else Reply(error=Unavailable()))
    flow = from_file(tmp_path, "  last: {model: main, prompt: hi}")
    result = clock.run(flow.run(models={"main": model}, clock=clock))
    assert result.outputs == {"r": "up"}
    assert len(model.requests) == 3
    assert 60 < clock.now() < 63


class Unavailable(ModelUnavailable):
    def __init__(self) -> None:
        super().__init__("down")


@pytest.mark.parametrize(
    ("breaker", "message", "hint"),
    [
        ("{failures: 0}", "failures", ""),
        ("{failure: 3}", "unknown key `failure`", "failures"),
        ("{within: 0s}", "within", ""),
        ("{after: soon}", "after", ""),
        ("true", "breaker", ""),
        ("{successes: 1.5}", "successes", ""),
    ],
)
def test_a_wrong_breaker_is_told_at_its_place(
    tmp_path: Path, breaker: str, message: str, hint: str
) -> None:
    with pytest.raises(SourceError, match=message) as raised:
        from_file(tmp_path, "  last: {value: 1}", breaker)
    assert raised.value.line == 4
    assert hint in str(raised.value)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("tools: {facts: {memory: ./f.sqlite, breaker: 3}}", "`breaker` does not go with a memory"),
        ("models: {a: {use: think, model: b, think: sample, breaker: 3}, b: 'local:m'}",
         "`breaker` does not go with `use: think`"),
    ],
)  # fmt: skip
def test_not_everything_has_one(declared: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        weft.loads(
            f"name: f\n{declared}\nnodes: {{a: {{value: 1}}}}\noutputs: {{r: '{{{{ a }}}}'}}"
        )


def test_a_tool_declares_its_own() -> None:
    clock = FakeClock()
    server = Server(clock, 1e9, lost)
    fetch = weft.tool(breaker={"failures": 2, "after": 10})(server.fetch)
    flow = weft.Flow("f")
    flow.output(r=flow.map(range_of(4), lambda i: flow.tool(fetch, i=i, default=0), width=1))
    clock.run(flow.run(clock=clock))
    assert len(server.calls) == 2
    other = FakeClock()
    other.run(flow.run(clock=other, tools=weft.Toolbox(fetch)))
    assert len(server.calls) == 4, "also where the program gives its tools"
    assert fetch.breaker == weft.Breaker(failures=2, after_s=10)
    for wrong, message in ({"failures": 0}, "failures of a breaker"), ({"afer": 1}, "did you mean"):
        with pytest.raises(BuildError, match=message):
            weft.tool(breaker=wrong)(server.fetch)  # type: ignore[arg-type]


def test_outside_a_workflow_a_model_has_none() -> None:
    with pytest.raises(BuildError, match="a breaker needs a workflow file"):
        weft.Models().of({"use": "local", "model": "smollm2-135m-instruct", "breaker": 3})


def test_what_is_kept_about_a_node_does_not_depend_on_it(tmp_path: Path) -> None:
    nodes = "  last: {model: main, prompt: hi}"
    digests = []
    for breaker in ("3", "{failures: 4}"):
        events: list[Any] = []
        flow, clock = from_file(tmp_path, nodes, breaker), FakeClock()
        journal, models = MemoryJournal(), {"main": FakeModel(["up"])}
        clock.run(flow.run(models=models, clock=clock, journal=journal, listeners=[events.append]))
        digests += [each.digest for each in events if isinstance(each, NodeStarted)]
    assert len(set(digests)) == 1


def test_a_server_that_does_not_start_is_not_started_again(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("raise SystemExit(3)\n")
    text = f"""
name: f
tools:
  shop: {{mcp: {{command: [{sys.executable}, {tmp_path / "server.py"}]}}, breaker: 2}}
nodes:
  a: {{map: [1, 2, 3, 4, 5], width: 1, do: {{tool: shop.buy, with: {{}}, default: 0}}}}
outputs: {{r: "{{{{ a }}}}"}}
"""
    events: list[Any] = []
    flow = weft.loads(text, str(tmp_path / "f.yaml"))
    result = flow.run_sync(listeners=[events.append], durability="none")
    assert result.outputs == {"r": [0] * 5}
    assert [state for state, _ in changes(events)] == ["open"]
    errors = [each.failure.error for each in result.outcomes.values() if each.failure is not None]
    assert errors.count("ToolBreakerOpen") == 3
