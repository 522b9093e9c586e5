"""Signals: values for `ask` nodes that come before, while or after they ask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.cli.command_line import go_into
from tests.cli.command_line import typed as cli
from tests.postgres_server import postgres_server
from tests.workflow.queue.test_http import gateway
from tests.workflow.queue.test_worker import Machine
from weft.errors import InputError, UnknownReference
from weft.testing import FakeClock

TEXT = """
name: order
nodes:
  first: {ask: "Which size?", schema: integer}
  paid: {ask: "Waiting for the payment", after: first, schema: {type: object}}
outputs: {said: "{{ [first, paid] }}"}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def test_values_that_come_early_are_kept(path: Path) -> None:
    clock, flow = FakeClock(), weft.loads(TEXT)
    submitted = flow.submit(journal=path, clock=clock)
    submitted.signal("paid", {"amount": 1})
    submitted.signal("paid", {"amount": 2})  # the last one counts

    async def main() -> None:
        async with Machine(path, clock, flow).works():
            while submitted.status != "asking":
                await clock.sleep(1)
            assert [question.node for question in submitted.questions()] == ["first"]
            submitted.signal("paid", {"amount": 3})
            await clock.sleep(5)
            assert submitted.status == "asking"  # it goes on waiting for the other one
            submitted.signal("first", 9)
            result = await submitted.result(clock=clock)
        assert result["said"] == [9, {"amount": 3}]

    clock.run(main())
    replayed = cli("replay", submitted.id, "--journal", str(path), "--json")
    assert replayed.exit_code == 0, replayed.output
    told = json.loads(replayed.stdout)
    assert (told["ok"], told["drifts"], told["differences"]) == (True, [], [])
    with pytest.raises(InputError, match="has ended"):
        submitted.signal("paid", {})


def test_a_worker_that_dies_loses_no_signal(path: Path) -> None:
    clock = FakeClock()

    def slow() -> weft.Flow:
        @weft.tool
        async def wait() -> int:
            await clock.sleep(10)
            return 1

        flow = weft.Flow("slow")
        waited = flow.tool(wait)
        flow.output(said=flow.ask("Paid?", bool, after=waited, name="paid"))
        return flow

    submitted = slow().submit(journal=path, clock=clock)

    async def main() -> None:
        dying = Machine(path, clock, slow())
        serving = asyncio.ensure_future(dying.worker.serve())
        while submitted.status != "running":
            await clock.sleep(1)
        submitted.signal("paid", True)
        await clock.sleep(5)  # the worker has taken the signal by now
        dying.journal.close()
        async with Machine(path, clock, slow()).works():
            result = await submitted.result(clock=clock)
        assert result["said"] is True
        serving.cancel()
        with pytest.raises((asyncio.CancelledError, weft.errors.StoreError)):
            await serving

    clock.run(main())


@pytest.mark.parametrize(
    ("node", "value", "error", "says"),
    [
        ("paid", 3, InputError, "does not fit"),
        ("first", True, InputError, "does not fit"),
        ("frist", 3, UnknownReference, "did you mean `first`"),
        ("../x", 3, UnknownReference, "no `ask` node"),
    ],
)
def test_mistakes(path: Path, node: str, value: Any, error: type[Exception], says: str) -> None:
    submitted = weft.loads(TEXT).submit(journal=path)
    with pytest.raises(error, match=says):
        submitted.signal(node, value)


def test_a_node_that_has_its_value_takes_no_more(path: Path) -> None:
    clock, flow = FakeClock(), weft.loads(TEXT)
    submitted = flow.submit(journal=path, clock=clock)
    submitted.signal("first", 1)

    async def main() -> None:
        async with Machine(path, clock, flow).works():
            while submitted.status != "asking":
                await clock.sleep(1)
        with pytest.raises(InputError, match="takes no more"):
            submitted.signal("first", 2)

    clock.run(main())


def test_signals_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_into(tmp_path, monkeypatch)
    (tmp_path / "order.yaml").write_text(TEXT)
    assert cli("submit", "order.yaml", "--key", "o-1").exit_code == 0
    sent = cli("signal", "o-1", "paid", "--value", '{"amount": 5}')
    assert (sent.exit_code, "kept until the run goes on" in sent.stdout) == (0, True)
    wrong = cli("signal", "o-1", "paid", "--value", "five")
    assert (wrong.exit_code, "does not fit" in wrong.stderr) == (2, True)
    ended = cli("resume", "o-1", "--answer", "first=3", "--json")
    assert json.loads(ended.stdout)["outputs"]["said"] == [3, {"amount": 5}]
    late = cli("signal", "o-1", "paid", "--value", "{}")
    assert (late.exit_code, "has ended: succeeded" in late.stderr) == (2, True)


def test_signals_over_http(path: Path) -> None:
    order = weft.loads(TEXT).submit(key="o-1", journal=path)

    async def body(client: Any, flow: weft.Flow) -> None:
        async def send(run: str, **fields: Any) -> Any:
            return await client.post(f"/v1/runs/{run}/signals", json=fields)

        sent = await send("o-1", node="paid", value={"amount": 5})
        assert (sent.status_code, sent.json()) == (
            202,
            {"run": "o-1", "node": "paid", "taken": False},
        )
        wrong = (
            (await send("o-2", node="paid", value={}), 404),
            (await send("o-1", node="piad", value={}), 404),
            (await send("o-1", node="paid", value=5), 400),
            (await send("o-1", node="paid"), 400),
            (await send("o-1", node=5, value=5), 400),
            (await send("o-1", node="paid", value={}, more=1), 400),
        )
        assert [answer.status_code for answer, _ in wrong] == [status for _, status in wrong]
        order.cancel()
        assert (await send("o-1", node="paid", value={})).status_code == 400

    gateway(path, body)


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with postgres_server() as server:
        yield server


def test_a_signal_wakes_a_worker_on_a_server(server: Any) -> None:
    place, flow = server.database(), weft.loads(TEXT)
    submitted = flow.submit(journal=place)
    submitted.signal("paid", {"amount": 1})

    async def main() -> None:
        with closing(weft.open_journal(place)) as journal:
            worker = weft.Worker([flow], journal)
            serving = asyncio.ensure_future(worker.serve())
            while (await asyncio.to_thread(lambda: submitted.status)) != "asking":
                pass
            await asyncio.to_thread(submitted.signal, "first", 9)
            result = await submitted.result()
            assert result["said"] == [9, {"amount": 1}]
            worker.drain()
            await serving

    asyncio.run(main())
