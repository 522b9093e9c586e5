"""Workers on a SQLite journal, in virtual time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.cli.reports.show import took
from weft.core.ports.queue import queue_of
from weft.durability.journal.sqlite import SqliteJournal
from weft.errors import Cancelled, InputError, RunExists, StoreError
from weft.testing import FakeClock, FakeModel
from weft.workflow.history.run_history import with_beginning
from weft.workflow.queue.live_workers import live_workers
from weft.workflow.queue.submission import SubmittedRun
from weft.workflow.queue.waiting import waiting_versions
from weft.workflow.queue.worker import WorkerEvent

TEXT = """
name: double
inputs: {n: integer}
nodes: {twice: {value: "{{ n * 2 }}"}}
outputs: {twice: "{{ twice }}"}
"""


class Machine:
    """A process: its connection to the journal, and its worker."""

    def __init__(self, path: Path, clock: FakeClock, *flows: weft.Flow, **options: Any) -> None:
        self.events: list[WorkerEvent] = []
        self.journal = SqliteJournal(path, clock=clock)
        self.worker = weft.Worker(flows, self.journal, clock=clock, report=self._report, **options)

    def _report(self, event: WorkerEvent) -> None:
        self.events.append(event)
        if event.kind in ("ended", "asking", "stopped"):
            try:
                entry = queue_of(self.journal).entry(event.run)
            except StoreError:  # a process that is dead: its journal is closed
                return
            assert entry is not None
            assert entry.state == event.kind, "told before the queue shows it"

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(event.kind, event.run) for event in self.events]

    @asynccontextmanager
    async def works(self) -> AsyncIterator[asyncio.Task[bool]]:
        serving = asyncio.ensure_future(self.worker.serve())
        try:
            yield serving
        finally:
            self.worker.drain()
            await serving
            self.journal.close()


def run(clock: FakeClock, main: Callable[[], Awaitable[None]]) -> None:
    async def program() -> None:
        await main()

    clock.run(program())


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def test_a_submitted_run_is_executed(path: Path, clock: FakeClock) -> None:
    flow = weft.loads(TEXT)
    submitted = flow.submit({"n": 21}, journal=path)
    assert submitted.status == "queued"

    async def main() -> None:
        machine = Machine(path, clock, flow)
        async with machine.works():
            result = await submitted.result(clock=clock)
        assert (result.status, result["twice"]) == ("succeeded", 42)
        assert machine.told == [("taken", submitted.id), ("ended", submitted.id)]

    run(clock, main)
    assert submitted.status == "succeeded"


def test_a_run_begins_when_a_worker_takes_it(path: Path, clock: FakeClock) -> None:
    flow = gated(clock, [])
    submitted = flow.submit({"n": 1}, journal=path, clock=clock)
    came = clock.wall()

    async def main() -> None:
        await clock.sleep(100)
        machine = Machine(path, clock, flow)
        assert not with_beginning(machine.journal, machine.journal.summary(submitted.id)).wall
        async with machine.works():
            await submitted.result(clock=clock)
            summary = with_beginning(machine.journal, machine.journal.summary(submitted.id))
        assert datetime.fromisoformat(summary.wall) == came + timedelta(seconds=100)
        assert took(summary) == "20.00 s"

    run(clock, main)


def test_a_key_is_one_run(path: Path) -> None:
    flow = weft.loads(TEXT)
    first = flow.submit({"n": 1}, key="order-1", journal=path)
    again = flow.submit({"n": 1}, key="order-1", journal=path)
    assert first.id == again.id == "order-1"
    with pytest.raises(RunExists, match="other inputs"):
        flow.submit({"n": 2}, key="order-1", journal=path)
    other = weft.loads(TEXT.replace("double", "other"))
    with pytest.raises(RunExists, match="other workflow"):
        other.submit({"n": 1}, key="order-1", journal=path)
    assert flow.submit({"n": 1}, journal=path).id != flow.submit({"n": 1}, journal=path).id


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"key": "two words"}, "`key`"),
        ({"key": "last"}, "`key`"),
        ({"queue": ""}, "`queue`"),
        ({"concurrency_limit": 0}, "at least 1"),
        ({"concurrency_key": "k"}, "needs a limit"),
        ({"priorty": 1}, "priority"),
    ],
)
def test_wrong_terms_are_refused(path: Path, settings: dict[str, Any], says: str) -> None:
    with pytest.raises((InputError, weft.errors.BuildError), match=says):
        weft.loads(TEXT).submit({"n": 1}, journal=path, **settings)


def test_wrong_inputs_are_refused_at_once(path: Path) -> None:
    with pytest.raises(InputError):
        weft.loads(TEXT).submit({"m": 1}, journal=path)
    assert not path.exists() or not weft.open_journal(path).runs()


def test_not_before_its_time_and_by_priority(path: Path, clock: FakeClock) -> None:
    flow = weft.loads(TEXT)
    for name, settings in (
        ("late", {"at": 600.0}),
        ("low", {"priority": -1}),
        ("high", {"priority": 1}),
    ):
        flow.submit({"n": 1}, key=name, journal=path, clock=clock, **settings)  # type: ignore[typeddict-item]

    async def main() -> None:
        machine = Machine(path, clock, flow, concurrency=1)
        async with machine.works():
            while ("ended", "late") not in machine.told:
                await clock.sleep(1)
        assert [r for kind, r in machine.told if kind == "taken"] == ["high", "low", "late"]
        assert clock.now() >= 600

    run(clock, main)


def gated(clock: FakeClock, ledger: list[str]) -> weft.Flow:
    """Two nodes, one after the other, that take ten seconds each."""

    @weft.tool
    async def first(n: int) -> int:
        await clock.sleep(10)
        ledger.append(f"first {n}")
        return n + 1

    @weft.tool
    async def second(n: int) -> int:
        await clock.sleep(10)
        ledger.append(f"second {n}")
        return n + 1

    flow = weft.Flow("gated")
    n = flow.input("n", int)
    flow.output(end=flow.tool(second, flow.tool(first, n)))
    return flow


def test_a_dead_workers_run_is_continued(path: Path, clock: FakeClock) -> None:
    ledger: list[str] = []
    submitted = gated(clock, ledger).submit({"n": 1}, journal=path)

    async def main() -> None:
        dying, other = (Machine(path, clock, gated(clock, ledger)) for _ in range(2))
        serving = asyncio.ensure_future(dying.worker.serve())
        while ledger != ["first 1"]:
            await clock.sleep(1)
        dying.journal.close()  # its lock ends, and nothing is written any more
        async with other.works():
            result = await submitted.result(clock=clock)
        assert result["end"] == 3
        assert [event.attempts for event in other.events if event.kind == "taken"] == [2]
        dying.worker.drain()
        with pytest.raises(weft.errors.StoreError, match="closed"):
            await serving

    run(clock, main)
    assert ledger.count("first 1") == 1


def test_a_drained_worker_lets_nodes_end(path: Path, clock: FakeClock) -> None:
    ledger: list[str] = []
    submitted = gated(clock, ledger).submit({"n": 1}, journal=path)

    async def main() -> None:
        one = Machine(path, clock, gated(clock, ledger))
        async with one.works() as serving:
            await clock.sleep(5)
            one.worker.drain()
            assert await serving
        assert ledger == ["first 1"]
        assert [kind for kind, _ in one.told] == ["taken", "left"]
        assert submitted.status == "queued"
        other = Machine(path, clock, gated(clock, ledger))
        async with other.works():
            assert (await submitted.result(clock=clock))["end"] == 3
        assert ledger == ["first 1", "second 2"]
        assert [event.attempts for event in other.events if event.kind == "taken"] == [1]

    run(clock, main)


def test_the_grace_period_ends(path: Path, clock: FakeClock) -> None:
    ledger: list[str] = []
    submitted = gated(clock, ledger).submit({"n": 1}, journal=path)

    async def main() -> None:
        one = Machine(path, clock, gated(clock, ledger), grace_s=2.0)
        async with one.works() as serving:
            await clock.sleep(5)
            one.worker.drain()
            assert not await serving
            assert clock.now() < 10

    run(clock, main)
    assert ledger == []
    assert submitted.status == "queued"


ASKS = """
name: asks
nodes:
  sure: {ask: "Sure?", schema: boolean}
  then: {value: "{{ sure }}"}
outputs: {said: "{{ then }}"}
"""


def test_a_question_occupies_nothing(path: Path, clock: FakeClock) -> None:
    flow, plain = weft.loads(ASKS), weft.loads(TEXT)
    asking = flow.submit(journal=path)

    async def main() -> None:
        machine = Machine(path, clock, flow, plain, concurrency=1)
        async with machine.works():
            while asking.status != "asking":
                await clock.sleep(1)
            assert machine.worker.running == ()
            assert (await plain.submit({"n": 2}, journal=path).result(clock=clock)).ok
            assert [question.node for question in asking.questions()] == ["sure"]
            asking.answer("sure", True)
            result = await asking.result(clock=clock)
        assert result["said"] is True

    run(clock, main)


def test_another_version_is_left_alone(path: Path, clock: FakeClock) -> None:
    old, new = weft.loads(TEXT), weft.loads(TEXT.replace("* 2", "* 3"))
    submitted = old.submit({"n": 1}, journal=path)

    async def main() -> None:
        async with Machine(path, clock, new).works():
            await clock.sleep(60)
            assert submitted.status == "queued"
        async with Machine(path, clock, old).works():
            assert (await submitted.result(clock=clock))["twice"] == 2

    run(clock, main)


def test_a_version_includes_the_code_of_tools(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(
        'name: f\ntools: {t: "./tools.py:t"}\nnodes: {a: {tool: t}}\noutputs: {a: "{{ a }}"}\n'
    )
    versions = set()
    for value in (1, 2, 1):
        (tmp_path / "tools.py").write_text(
            f'import weft\n\n@weft.tool\ndef t() -> int:\n    """It."""\n    return {value}\n'
        )
        entry = weft.load(file).submit(journal=path).entry()
        versions.add(entry.terms.version)
    assert len(versions) == 2


def test_a_limit_of_runs_holds(path: Path, clock: FakeClock) -> None:
    running: list[int] = []
    most = 0

    @weft.tool
    async def busy(n: int) -> int:
        nonlocal most
        running.append(n)
        most = max(most, len(running))
        await clock.sleep(3)
        running.remove(n)
        return n

    def flow() -> weft.Flow:
        made = weft.Flow("limited")
        made.output(n=made.tool(busy, made.input("n", int)))
        return made

    runs = [flow().submit({"n": n}, journal=path, concurrency_limit=2) for n in range(6)]

    async def main() -> None:
        async with Machine(path, clock, flow()).works(), Machine(path, clock, flow()).works():
            for submitted in runs:
                assert (await submitted.result(clock=clock)).ok

    run(clock, main)
    assert most == 2


def test_cancellation(path: Path, clock: FakeClock) -> None:
    flow = weft.loads(TEXT)
    waiting = flow.submit({"n": 1}, journal=path)
    waiting.cancel("not needed")
    assert waiting.status == "cancelled"
    ledger: list[str] = []
    under_way = gated(clock, ledger).submit({"n": 1}, journal=path)

    async def main() -> None:
        result = await waiting.result(clock=clock)
        assert (result.status, result.reasons) == ("cancelled", ("not needed",))
        async with Machine(path, clock, gated(clock, ledger)).works():
            await clock.sleep(5)
            under_way.cancel()
            assert (await under_way.result(clock=clock)).status == "cancelled"

    run(clock, main)
    assert ledger == []


def test_a_run_that_cannot_begin_is_stopped_and_tried_again(path: Path, clock: FakeClock) -> None:
    """Its inputs fit when it was submitted; its model is missing at this worker."""
    text = 'name: m\nmodels: {m: {use: openai, model: x, base_url: "http://127.0.0.1:9/v1"}}\n'
    text += 'nodes: {a: {model: m, prompt: "hi"}}\noutputs: {a: "{{ a }}"}\n'
    flow = weft.loads(text)
    submitted = flow.submit(journal=path)

    async def main() -> None:
        broken = {"other": FakeModel(["x"])}
        async with Machine(path, clock, flow, models=broken).works():
            with pytest.raises(Cancelled, match="other"):
                await submitted.result(clock=clock)
        assert submitted.status == "stopped"
        submitted.retry()
        assert submitted.status == "queued"

    run(clock, main)


def test_an_unknown_effect_asks_a_person(path: Path, clock: FakeClock) -> None:
    """The worker dies within a `once` call: the next one does not repeat it."""
    calls: list[str] = []

    @weft.tool(effect="once")
    async def pay() -> str:
        calls.append("paid")
        await clock.sleep(1000)
        return "paid"

    def flow() -> weft.Flow:
        made = weft.Flow("books")
        made.output(paid=made.tool(pay))
        return made

    submitted = flow().submit(journal=path)

    async def main() -> None:
        dying, other = (Machine(path, clock, flow()) for _ in range(2))
        serving = asyncio.ensure_future(dying.worker.serve())
        while not calls:
            await clock.sleep(0.1)
        dying.journal.close()
        async with other.works():
            result = await submitted.result(clock=clock)
        assert result.status == "failed"
        failure = result.outcomes[next(iter(result.outcomes))].failure
        assert failure is not None
        assert failure.error == "EffectUnknown"
        serving.cancel()
        with pytest.raises((asyncio.CancelledError, weft.errors.StoreError)):
            await serving

    run(clock, main)
    assert calls == ["paid"]


def test_live_workers_are_listed(path: Path, clock: FakeClock) -> None:
    flow = gated(clock, [])
    submitted = flow.submit({"n": 1}, journal=path, clock=clock)

    async def main() -> None:
        looker = SqliteJournal(path, clock=clock)
        dying = Machine(path, clock, flow, concurrency=3, lease_s=12.0)
        serving = asyncio.ensure_future(dying.worker.serve())
        await clock.sleep(5)
        (seen,) = live_workers(looker)
        assert seen.running == (submitted.id,)
        assert (seen.entry.pid, seen.entry.concurrency) == (os.getpid(), 3)
        assert [name for name, _ in seen.entry.versions] == ["gated"]
        assert clock.wall().timestamp() - seen.entry.beat_s <= 3
        async with Machine(path, clock, weft.loads(TEXT)).works():
            await clock.sleep(1)
            assert [one.entry.concurrency for one in live_workers(looker)] == [3, 4]
            dying.journal.close()  # it dies: nothing is written any more
            await clock.sleep(8)
            assert len(live_workers(looker)) == 2
            await clock.sleep(4)
            assert [one.entry.concurrency for one in live_workers(looker)] == [4]
        assert live_workers(looker) == []  # it has left
        looker.close()
        serving.cancel()
        with pytest.raises((asyncio.CancelledError, weft.errors.StoreError)):
            await serving

    run(clock, main)


def test_a_version_that_a_live_worker_has_does_not_wait(path: Path, clock: FakeClock) -> None:
    flow, other = gated(clock, []), weft.loads(TEXT)
    for n in range(3):
        flow.submit({"n": n}, journal=path, clock=clock)
    other.submit({"n": 1}, journal=path, clock=clock)
    flow.submit({"n": 1}, queue="slow", journal=path, clock=clock)

    async def main() -> None:
        looker = SqliteJournal(path, clock=clock)
        async with Machine(path, clock, flow, other, concurrency=1).works():
            await clock.sleep(1)
            assert waiting_versions(looker, clock.wall().timestamp()) == {}
        waits = waiting_versions(looker, clock.wall().timestamp())
        assert {key.flow: runs.runs for key, runs in waits.items()} == {"gated": 4, "double": 1}
        async with Machine(path, clock, other, concurrency=1).works():
            await clock.sleep(5)
            waits = waiting_versions(looker, clock.wall().timestamp())
        assert {key.flow: runs.runs for key, runs in waits.items()} == {"gated": 4}
        looker.close()

    run(clock, main)


def test_a_worker_needs_a_workflow_and_a_place(path: Path) -> None:
    with closing(weft.open_journal(path)) as journal:
        with pytest.raises(weft.errors.BuildError):
            weft.Worker([], journal)
        with pytest.raises(weft.errors.BuildError):
            weft.Worker([weft.loads(TEXT)], journal, concurrency=0)
        with pytest.raises(weft.errors.BuildError, match="lease_s"):
            weft.Worker([weft.loads(TEXT)], journal, lease_s=0.0)


def test_a_run_with_a_failover_queue_is_continued(path: Path, clock: FakeClock) -> None:
    """A run that was started here, without a worker, and whose process dies."""
    ledger: list[str] = []

    async def main() -> None:
        own = SqliteJournal(path, clock=clock)
        started = gated(clock, ledger).start(
            {"n": 1}, journal=own, failover_queue="default", clock=clock
        )
        waiting = asyncio.ensure_future(started.wait())
        while ledger != ["first 1"]:
            await clock.sleep(1)
        own.close()
        machine = Machine(path, clock, gated(clock, ledger))
        async with machine.works():
            result = await SubmittedRun[Any](started.id, path).result(clock=clock)
        assert result["end"] == 3
        assert (await waiting).status == "failed"  # it could not be recorded any more

    run(clock, main)
    assert ledger.count("first 1") == 1


def test_a_question_has_no_failover_queue() -> None:
    with pytest.raises(weft.errors.BuildError, match="no queue"):
        weft.AskSettings(failover_queue="default")
