"""Servings on demand: detached supervisors, leases, sudden deaths. All processes are real."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving.vllm.supervise.polling import ask, nothing_left, processes_of, until
from weft.core.errors import SpecError, StartError
from weft.serving.vllm import serve
from weft.serving.vllm.client.demand import ServerLease, demand, renewed
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.supervise import registry
from weft.serving.vllm.supervise.leases import LeaseFile, holders
from weft.serving.vllm.supervise.processes import end_leftovers
from weft.serving.vllm.supervise.registry import ServingEntry

SPEC = ServeSpec("fake")
HOLDER = """
import asyncio, sys
from tests.serving.vllm.fake_weft import COMMAND
from weft.serving.vllm.supervise import detached
from weft.serving.vllm.client.demand import demand
from weft.serving.vllm.launch.spec import ServeSpec

async def main():
    detached.COMMAND = COMMAND
    lease = await demand(ServeSpec("fake"), show=print)
    print("LEASE", lease.id, flush=True)
    sys.stdin.read()

asyncio.run(main())
"""


def running() -> list[ServingEntry]:
    with registry.locked():
        return registry.entries()


def only() -> ServingEntry:
    (entry,) = running()
    return entry


def gone(entry: ServingEntry) -> None:
    until(lambda: not running(), "an empty registry")
    nothing_left(entry)


def test_it_starts_one_and_ends_it_with_the_last_lease(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_START_S", "0.4")
    said: list[str] = []

    async def main() -> tuple[ServerLease, ServingEntry]:
        lease = await demand(SPEC, show=said.append)
        assert (await asyncio.to_thread(ask, lease.urls[0]))["pid"]
        assert lease.name == "fake"
        entry = only()
        await lease.release()
        await lease.release()
        return lease, entry

    lease, entry = asyncio.run(main())
    assert lease.id == entry.id
    assert "loading weights" in said
    gone(entry)


def test_two_at_once_share_one_and_one_alone_keeps_it(state: Path) -> None:
    async def main() -> ServingEntry:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(demand(SPEC)) for _ in range(2)]
        first, second = (task.result() for task in tasks)
        assert first.id == second.id
        entry = only()
        assert holders(entry.id) == 2
        await first.release()
        third = await demand(ServeSpec("fake"))
        assert third.id == second.id
        await second.release()
        other = await demand(ServeSpec("fake", max_seqs=3))
        assert other.id != third.id
        await other.release()
        assert ask(third.urls[0])
        serve.stop(next(e for e in running() if e.id == third.id))
        return entry

    gone(asyncio.run(main()))


def test_a_failing_start_is_the_same_error(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_ERROR", "ValueError: no such thing as a fake model")
    with pytest.raises(StartError, match="no such thing as a fake model"):
        asyncio.run(demand(SPEC))
    until(lambda: not running(), "an empty registry")


def test_a_supervisor_that_is_killed_while_starting(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NEVER", "1")

    async def main() -> ServingEntry:
        asking = asyncio.create_task(demand(SPEC))
        entry = await asyncio.to_thread(until, _starting, "a starting server")
        os.kill(entry.supervisor.pid, signal.SIGKILL)
        with pytest.raises(StartError, match="was killed"):
            await asking
        return entry

    gone(asyncio.run(main()))


def test_cancelling_the_wait_releases_the_interest(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NEVER", "1")

    async def main() -> ServingEntry:
        asking = asyncio.create_task(demand(SPEC))
        entry = await asyncio.to_thread(until, _starting, "a starting server")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        return entry

    gone(asyncio.run(main()))


def test_a_server_open_to_anybody_is_refused(state: Path) -> None:
    with pytest.raises(SpecError, match="--api-key-env"):
        asyncio.run(demand(ServeSpec("fake", host="0.0.0.0")))
    with pytest.raises(SpecError, match="NO_SUCH_KEY"):
        asyncio.run(demand(ServeSpec("fake", api_key_env="NO_SUCH_KEY")))


@pytest.fixture
def holder(state: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[4],
    )
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if line.startswith("LEASE"):
            return process
    pytest.fail(f"no lease: {said}")


def test_a_holder_that_is_killed_lets_go(holder: subprocess.Popen[str]) -> None:
    entry = only()
    with holder:
        holder.kill()
    gone(entry)


@pytest.mark.parametrize("victims", ["supervisor", "supervisor and guard"])
def test_a_supervisor_that_is_killed_takes_everything_along(
    holder: subprocess.Popen[str], victims: str
) -> None:
    entry = only()
    engine = entry.replicas[0].engine
    assert engine is not None
    guard = int(Path(f"/proc/{engine}/stat").read_text().split()[3])
    os.kill(entry.supervisor.pid, signal.SIGSTOP)
    if "guard" in victims:
        os.kill(guard, signal.SIGKILL)
        until(lambda: engine not in processes_of(entry.id), "the engine went with its guard")
        assert processes_of(entry.id), "its worker did not"
    os.kill(entry.supervisor.pid, signal.SIGKILL)
    if "guard" in victims:
        until(lambda: not entry.supervisor.lives(), "its death")
        end_leftovers()  # unless a test in another process has ended them already
    gone(entry)
    with holder:
        holder.kill()


def test_stop_kills_a_supervisor_that_does_not_obey(
    holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "_NOW_S", 0.2)
    entry = only()
    os.kill(entry.supervisor.pid, signal.SIGSTOP)
    serve.stop(entry, now=True)
    gone(entry)
    with holder:
        holder.kill()


def test_a_lease_is_only_as_alive_as_its_holder(state: Path) -> None:
    hold = LeaseFile("a-1")
    assert holders("a-1") == 1
    stale = state / "leases" / "a-1" / "1-dead.lease"
    stale.touch()
    assert holders("a-1") == 1
    assert not stale.exists()
    hold.release()
    assert holders("a-1") == 0


def _starting() -> ServingEntry | None:
    return next((entry for entry in running() if entry.stage == "loading weights"), None)


def test_a_lease_is_renewed_after_its_supervisor_was_killed(state: Path) -> None:
    async def main() -> tuple[ServingEntry, ServingEntry]:
        lease = await demand(SPEC)
        same = await renewed(lease, SPEC, needed=False)
        assert same is not None
        assert (same.id, same.urls) == (lease.id, lease.urls)
        first = only()
        os.kill(first.supervisor.pid, signal.SIGKILL)
        await asyncio.to_thread(until, lambda: not running(), "an empty registry")
        assert await renewed(lease, SPEC, needed=False) is None
        other = await renewed(lease, SPEC, needed=True)
        assert other is not None
        assert other.id != lease.id
        assert (await asyncio.to_thread(ask, other.urls[0]))["pid"]
        second = only()
        stale = await renewed(lease, SPEC, needed=False)
        assert stale is not None
        assert stale.id == other.id
        await stale.release()
        await other.release()
        return first, second

    first, second = asyncio.run(main())
    nothing_left(first)
    gone(second)
