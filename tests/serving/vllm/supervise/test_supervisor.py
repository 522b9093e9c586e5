"""A supervisor with real processes: the fake engine, in this process's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from types import SimpleNamespace

import pytest

from tests.serving.vllm.fake_weft import QUICK, launch
from tests.serving.vllm.supervise.polling import (
    ask,
    free,
    lives,
    nothing_left,
    port_of,
    processes_of,
)
from weft.core.errors import StartError
from weft.serving.vllm.client.demand import satisfies
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.supervise import registry
from weft.serving.vllm.supervise.detached import SupervisionTerms, entry_for
from weft.serving.vllm.supervise.processes import Identity
from weft.serving.vllm.supervise.registry import ServingEntry
from weft.serving.vllm.supervise.replica_process import HealthPolicy, RestartPolicy
from weft.serving.vllm.supervise.supervisor import ServerSupervisor

Scene = Callable[["Running"], Awaitable[None]]


class Running:
    """A supervisor under test, and what it said."""

    def __init__(self, spec: ServeSpec, terms: SupervisionTerms, health: HealthPolicy) -> None:
        self.said: list[str] = []
        self.ready = asyncio.Event()
        self.id = f"fake-{secrets.token_hex(4)}"  # another run of the tests may be near
        entry = entry_for(self.id, spec, terms, Identity.own())
        self.supervisor = ServerSupervisor(
            entry,
            launch,
            show=self.said.append,
            ready=lambda _: self.ready.set(),
            health=health,
        )

    def entry(self) -> ServingEntry:
        with registry.locked():
            found = registry.entry_of(self.id)
        assert found is not None
        return found

    async def until(self, holds: Callable[[ServingEntry], bool]) -> ServingEntry:
        async with asyncio.timeout(120):
            while not holds(entry := self.entry()):
                await asyncio.sleep(0.01)
        return entry

    async def until_none_left(self) -> None:
        """Wait for the last of its processes, which may be on its way out."""
        async with asyncio.timeout(120):
            while processes_of(self.id):
                await asyncio.sleep(0.01)

    async def asked(self, path: str = "/v1/models", replica: int = 0) -> dict[str, int]:
        return await asyncio.to_thread(ask, self.entry().replicas[replica].url, path)


def play(
    scene: Scene,
    spec: ServeSpec | None = None,
    terms: SupervisionTerms | None = None,
    health: HealthPolicy = QUICK,
) -> tuple[list[str], BaseException | None]:
    """Run a supervisor and a scene beside it; what was said and what it raised."""

    async def main() -> tuple[list[str], BaseException | None]:
        running = Running(spec or ServeSpec("fake"), terms or SupervisionTerms(drain_s=60), health)
        serving = asyncio.create_task(running.supervisor.run())
        last: ServingEntry | None = None
        try:
            async with asyncio.timeout(300):
                done, _ = await asyncio.wait(
                    {serving, asyncio.create_task(running.ready.wait())},
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if serving not in done:
                    last = running.entry()
                    await scene(running)
                    with contextlib.suppress(AssertionError):
                        last = running.entry()
                await asyncio.wait({serving})
        finally:
            serving.cancel()
            await asyncio.wait({serving})
        with registry.locked():
            assert not registry.entries()
        if last is not None:
            nothing_left(last)
        return running.said, serving.exception()

    return asyncio.run(main())


async def stop(running: Running) -> None:
    running.supervisor.stop()


def test_it_starts_and_stops(state: Path) -> None:
    async def scene(running: Running) -> None:
        entry = running.entry()
        assert entry.status == "ready"
        assert entry.replicas[0].engine is not None
        assert (await running.asked())["pid"] == entry.replicas[0].engine
        assert Path(entry.replicas[0].log).stat().st_mode & 0o777 == 0o600
        running.supervisor.stop()

    said, error = play(scene)
    assert error is None
    assert said[0].startswith("loading the engine")
    assert "loading weights" in said
    assert "ready" in said


def test_a_slow_start_shows_its_stage(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_START_S", "0.3")
    assert play(stop)[1] is None


def test_never_healthy(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time passes as soon as it has told how far it is."""
    monkeypatch.setenv("FAKE_NEVER", "1")

    def clock() -> float:
        told = any("Starting to load" in log.read_text() for log in state.rglob("0.log"))
        return monotonic() + 3600 * told

    monkeypatch.setattr(
        "weft.serving.vllm.supervise.replica_process.time", SimpleNamespace(monotonic=clock)
    )
    _, error = play(stop, terms=SupervisionTerms(start_timeout_s=600))
    assert isinstance(error, StartError)
    assert error.stage_reached == "loading weights"
    assert "Starting to load model fake" in error.message
    assert "0.log" in str(error.hint)


def test_ranks_without_a_server_are_ready_when_they_have_their_weights(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOADED", "1")
    monkeypatch.setenv("FAKE_NEVER", "1")

    async def scene(running: Running) -> None:
        entry = running.entry()
        assert (entry.status, entry.urls) == ("ready", ())
        assert not satisfies(entry, ServeSpec("fake"))
        running.supervisor.stop()

    said, error = play(scene, ServeSpec("fake", extra=("--headless",)))
    assert error is None
    assert "ready" in said


def test_a_failing_start_is_diagnosed(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_ERROR", "ValueError: no such thing as a fake model")
    said, error = play(stop)
    assert isinstance(error, StartError)
    assert "no such thing as a fake model" in error.message
    assert not [line for line in said if "starts again" in line]


def test_a_crash_is_restarted_at_the_same_address(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CRASH_S", "0.3")
    monkeypatch.setenv("FAKE_CRASHES", "1")
    urls: list[str] = []

    async def scene(running: Running) -> None:
        urls.append(running.entry().urls[0])
        entry = await running.until(lambda e: e.restarts == 1 and e.status == "ready")
        urls.append(entry.urls[0])
        assert await running.asked()
        running.supervisor.stop()

    said, error = play(scene)
    assert error is None
    assert urls[0] == urls[1]
    # On a busy machine its silence may be noticed before its end: either is a reason.
    assert any(line.startswith("starts again") for line in said)


def test_a_crash_loop_is_given_up(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CRASH_S", "0.3")

    async def scene(running: Running) -> None:
        pass

    said, error = play(scene)
    assert isinstance(error, StartError)
    assert "given up" in error.message
    assert len([line for line in said if "starts again" in line]) == 3


def test_one_replica_that_is_given_up_leaves_the_other(state: Path) -> None:
    health = replace(QUICK, restarts=lambda: RestartPolicy(first_s=0.01, most=1))

    async def scene(running: Running) -> None:
        for lives_before in range(2):
            entry = await running.until(
                lambda e, n=lives_before: e.replicas[1].status == "ready" and e.restarts == n
            )
            assert entry.replicas[1].engine is not None
            os.kill(entry.replicas[1].engine, signal.SIGKILL)
        entry = await running.until(lambda e: e.replicas[1].status == "failed")
        assert entry.status == "degraded"
        assert entry.urls == (entry.replicas[0].url,)
        assert await running.asked(replica=0)
        running.supervisor.stop()

    said, error = play(scene, ServeSpec("fake", replicas=2), health=health)
    assert error is None
    assert any("given up" in line for line in said)


def test_a_hung_server_is_restarted(
    state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hang = tmp_path / "hang"
    many = partial(RestartPolicy, first_s=0.02, most=1_000)
    health = replace(QUICK, timeout_s=0.5, restarts=many)
    monkeypatch.setenv("FAKE_HANG", str(hang))

    async def scene(running: Running) -> None:
        hang.touch()
        await running.until(lambda e: e.restarts > 0)
        hang.unlink()  # a slow machine may be silent more than once
        await running.until(lambda e: e.status == "ready")
        running.supervisor.stop()

    said, error = play(scene, health=health)
    assert error is None
    assert any("did not answer" in line for line in said)


def test_deaf_to_sigterm_is_killed(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_DEAF", "1")
    assert play(stop, terms=SupervisionTerms(drain_s=0.2))[1] is None


def test_requests_in_flight_may_finish(state: Path, tmp_path: Path) -> None:
    answers = []

    async def scene(running: Running) -> None:
        asking = asyncio.create_task(running.asked("/slow"))
        await running.until(lambda _: (tmp_path / "asked").exists())
        running.supervisor.stop()
        assert running.entry().status == "stopping"
        await running.until(lambda _: (tmp_path / "ending").exists())
        (tmp_path / "answer").touch()
        answers.append(await asking)

    assert play(scene, terms=SupervisionTerms(drain_s=60))[1] is None
    assert answers[0]["pid"]


def test_the_second_stop_ends_at_once(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_DEAF", "1")

    async def scene(running: Running) -> None:
        running.supervisor.stop()
        running.supervisor.stop()

    assert play(scene, terms=SupervisionTerms(drain_s=3600))[1] is None


def test_stopping_while_it_starts(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NEVER", "1")

    async def main() -> None:
        running = Running(ServeSpec("fake"), SupervisionTerms(), QUICK)
        serving = asyncio.create_task(running.supervisor.run())
        async with asyncio.timeout(120):
            while "loading weights" not in running.said:
                await asyncio.sleep(0.01)
            entry = running.entry()
            assert entry.stage == "loading weights"
            running.supervisor.stop()
            assert not await serving
        nothing_left(entry)

    asyncio.run(main())


def test_stopping_before_anything_started(state: Path) -> None:
    async def main() -> None:
        running = Running(ServeSpec("fake"), SupervisionTerms(), QUICK)
        running.supervisor.stop()
        assert not await asyncio.wait_for(running.supervisor.run(), 120)
        assert "loading weights" not in running.said

    asyncio.run(main())


@pytest.mark.parametrize("turns", range(1, 12))
def test_stopping_at_any_step_of_the_start(state: Path, turns: int) -> None:
    async def main() -> None:
        running = Running(ServeSpec("fake"), SupervisionTerms(), QUICK)
        serving = asyncio.create_task(running.supervisor.run())
        for _ in range(turns):
            await asyncio.sleep(0)
        running.supervisor.stop()
        await asyncio.wait_for(serving, 300)
        await running.until_none_left()

    asyncio.run(main())


def test_cancelling_leaves_nothing(state: Path) -> None:
    async def main() -> None:
        running = Running(ServeSpec("fake"), SupervisionTerms(), QUICK)
        serving = asyncio.create_task(running.supervisor.run())
        await running.ready.wait()
        entry = running.entry()
        serving.cancel()
        await asyncio.wait({serving})
        assert serving.cancelled()
        nothing_left(entry)

    asyncio.run(main())


@pytest.mark.parametrize("victim", ["engine", "worker", "guard"])
def test_whoever_is_killed_everything_else_goes_and_comes_again(state: Path, victim: str) -> None:
    async def scene(running: Running) -> None:
        told = await running.asked()
        pids = {"engine": told["pid"], "worker": told["worker"]}
        pids["guard"] = int(Path(f"/proc/{told['pid']}/stat").read_text().split()[3])
        os.kill(pids[victim], signal.SIGKILL)
        await running.until(lambda e: e.restarts == 1 and e.status == "ready")
        await running.until(lambda _: not any(lives(pid) for pid in pids.values()))  # and buried
        running.supervisor.stop()

    assert play(scene)[1] is None


def test_a_given_port_that_is_taken_is_refused(state: Path) -> None:
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        port = other.getsockname()[1]
        _, error = play(stop, ServeSpec("fake", port=port))
    assert isinstance(error, StartError)
    assert f"port {port}" in error.message
    assert error.stage_reached == "port"


def test_given_ports_count_up(state: Path) -> None:
    async def scene(running: Running) -> None:
        first, second = map(port_of, running.entry().urls)
        assert second == first + 1
        running.supervisor.stop()

    for port in range(23451, 23551, 2):
        if free(port) and free(port + 1):
            break
    assert play(scene, ServeSpec("fake", port=port, replicas=2))[1] is None
