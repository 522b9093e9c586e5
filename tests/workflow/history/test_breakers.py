"""Circuit breakers in records: resumed, replayed, of servers, after a kill."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import weft
from tests.agents.openapi.api_server import document
from tests.workflow.case import loads
from tests.workflow.history.recorded_runs import House
from weft.core.events import BreakerChanged, NodeRetrying
from weft.errors import ModelUnavailable, ToolRaised
from weft.testing import FakeClock, FakeTools, MemoryJournal, Reply
from weft.workflow.history.replay import replay

HEAD = """\
name: case
models:
  small: {use: local, model: smollm2-135m-instruct, breaker: {failures: 2, after: 20s}}
tools:
  search: {use: "./tools.py:search", breaker: {failures: 2, after: 20s, successes: 1}}
"""
NODES = """\
  a:
    map: [x, y, z]
    width: 1
    do:
      tool: search
      with: {query: "{{ item }}"}
      retry: {attempts: 3, delay: 1s, jitter: 0}
      default: []
  b: {model: small, prompt: "{{ a | length }}"}"""


def test_what_was_refused_is_refused_again_in_a_replay() -> None:
    house = House(lambda _: Reply(error=ModelUnavailable("down")))

    async def search(query: str, limit: int = 3) -> list[dict[str, str]]:
        if house.clock.now() < 30:
            raise ToolRaised("refused", retryable=True)
        return [{"text": query}]

    def answer(_: object) -> Reply:
        if house.clock.now() < 45:
            return Reply(error=ModelUnavailable("down"))
        return Reply("up")

    house.script, house.tools = answer, {"search": search}
    flow, events = loads(NODES, head=HEAD), list[Any]()
    result = house.wait(lambda: flow.start({}, **house.settings(listeners=[events.append])))
    assert result.ok, result.reasons
    changed = [(each.kind, each.state) for each in events if isinstance(each, BreakerChanged)]
    assert changed[:2] == [("tool", "open"), ("tool", "half-open")]
    waits = [round(each.delay_s) for each in events if isinstance(each, NodeRetrying)]
    assert 20 in waits
    recorded = [each for each in house.story().records if isinstance(each.record, BreakerChanged)]
    assert [each.record.state for each in recorded] == [state for _, state in changed]  # type: ignore[union-attr]
    house.script, house.tools = None, {}  # type: ignore[assignment]
    found = replay(house.story(), flow.unit)
    assert found.ok, found.report()


PROGRAM = """
import sys
import weft

flow = weft.load(sys.argv[1])
flow.run_sync(run="r", journal=weft.open_journal(sys.argv[2]))
"""
TOOLS = '''
import os
import signal
from pathlib import Path

import weft

HERE = Path(__file__).parent


@weft.tool
def fetch(i: int) -> int:
    """Fetch."""
    with (HERE / "calls").open("a") as file:
        file.write(f"{i}\\n")
    raise ConnectionError("refused")


@weft.tool
def die(after: list[int]) -> int:
    """Kill this process, the first time."""
    try:
        (HERE / "dead").touch(exist_ok=False)
    except FileExistsError:
        return 0
    os.kill(os.getpid(), signal.SIGKILL)
'''
KILLED = """
name: killed
tools:
  fetch: {use: "./tools.py:fetch", breaker: {failures: 2, after: 1h}}
  die: ./tools.py:die
nodes:
  a: {map: [1, 2, 3], width: 1, do: {tool: fetch, with: {i: "{{ item }}"}, default: 0}}
  b: {tool: die, with: {after: "{{ a }}"}}
  c: {tool: fetch, with: {i: "{{ 4 + b }}"}, on_failure: skip}
outputs: {r: "{{ a }}"}
"""


async def resumed(flow: weft.Flow, journal: str) -> weft.FlowResult:
    opened = weft.open_journal(journal)
    try:
        return await flow.resume("r", journal=opened).wait()
    finally:
        opened.close()


def test_after_a_kill_it_is_open_in_the_next_process(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS, "utf-8")
    (tmp_path / "f.yaml").write_text(KILLED, "utf-8")
    where = [str(tmp_path / "f.yaml"), str(tmp_path / "j.sqlite")]
    ended = subprocess.run([sys.executable, "-c", PROGRAM, *where], check=False)
    assert ended.returncode == -signal.SIGKILL
    flow = weft.load(where[0])
    result = asyncio.run(resumed(flow, where[1]))
    assert (tmp_path / "calls").read_text().split() == ["1", "2"], "not one call more"
    failure = result.outcomes["c"].failure  # type: ignore[index]
    assert failure is not None
    assert failure.error == "ToolBreakerOpen"


def test_a_resumed_run_waits_for_what_is_left(tmp_path: Path) -> None:
    clock, journal, calls = FakeClock(), MemoryJournal(), list[float]()

    async def search(query: str, limit: int = 3) -> list[dict[str, str]]:
        calls.append(clock.now())
        raise ToolRaised("refused", retryable=True)

    flow = loads(NODES.partition("  b:")[0], head=HEAD)

    def settings(at: FakeClock) -> dict[str, Any]:
        return {"tools": FakeTools(search=search), "journal": journal, "clock": at}

    async def first() -> None:
        run = flow.start(run="r", **settings(clock))
        run_ends = clock.call_later(5, lambda: run.pause("leave it"))
        await run.wait()
        run_ends.cancel()

    clock.run(first())
    assert calls == [0.0, 1.0], "no more: it opened at 1, until 21"
    later = clock = FakeClock(15.0)  # as another process, ten seconds after

    async def second() -> None:
        run = flow.resume("r", **settings(later))
        await run.wait()

    later.run(second())
    assert calls[2] == 21.0


def test_one_breaker_for_all_tools_of_a_server(tmp_path: Path) -> None:
    (tmp_path / "shop.json").write_text(json.dumps(document()), "utf-8")
    text = """
name: f
tools:
  shop:
    openapi:
      document: ./shop.json
      operations: [getItem, add-item]
      base_url: http://127.0.0.1:9
      private: [127.0.0.0/8]
      retries: 0
    breaker: 2
nodes:
  a: {map: [1, 2], width: 1, do: {tool: shop.getItem, with: {id: "{{ item }}"}, default: 0}}
  b: {tool: shop.add-item, with: {body: {name: leaf}}, after: a, on_failure: skip}
outputs: {r: "{{ a }}"}
"""
    events: list[Any] = []
    flow = weft.loads(text, str(tmp_path / "f.yaml"))
    result = flow.run_sync(listeners=[events.append], durability="none")
    [change] = [each for each in events if isinstance(each, BreakerChanged)]
    assert (change.kind, change.name, change.state) == ("server", "shop", "open")
    assert change.reason.startswith("2 calls failed within 300 s, the last with ")
    failure = result.outcomes["b"].failure  # type: ignore[index]
    assert failure is not None
    assert failure.message.startswith("the tool server `shop` is not called")
