"""Ports, back-off, logs, lines and health: the small parts, each alone."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.vllm.fake_weft import QUICK
from tests.serving.vllm.supervise.polling import port_of
from tests.serving.vllm.supervise.test_supervisor import Running, play
from weft.core.errors import StartError
from weft.core.hosts import is_loopback, reachable
from weft.serving.vllm.launch.ports import HeldPort
from weft.serving.vllm.supervise import replica
from weft.serving.vllm.supervise.guarded_process import each_line
from weft.serving.vllm.supervise.log import LogFile
from weft.serving.vllm.supervise.replica_process import RestartPolicy, healthy

LOCAL = "127.0.0.1"


def server(port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((LOCAL, port))
    made.listen(1)
    return made


def test_a_held_port_is_only_for_a_server_that_knows_it() -> None:
    held = HeldPort(LOCAL)
    held.hold()
    assert held.port
    assert not held.taken()
    with pytest.raises(OSError, match="in use"), socket.socket() as stranger:
        stranger.bind((LOCAL, held.port))
    with server(held.port):
        assert held.taken()
    with server(held.port):
        pass
    first = held.port
    held.hold()
    assert held.port != first or not held.taken()
    held.close()
    held.close()
    with socket.socket() as stranger:
        stranger.bind((LOCAL, held.port))


def test_a_wanted_port_must_be_free() -> None:
    with server(0) as there:
        port = there.getsockname()[1]
        with pytest.raises(StartError, match=f"port {port} of {LOCAL} is taken"):
            HeldPort(LOCAL, port).hold()
    held = HeldPort(LOCAL, port)
    held.hold()
    assert held.port == port
    held.close()
    with pytest.raises(StartError, match="cannot listen on"):
        HeldPort("192.0.2.1").hold()


def test_addresses() -> None:
    assert [is_loopback(h) for h in ("127.0.0.1", "::1", "[::1]", "localhost")] == [True] * 4
    assert [is_loopback(h) for h in ("0.0.0.0", "::", "10.0.0.1", "example.org")] == [False] * 4
    found = [reachable(host) for host in ("0.0.0.0", "::", "::1", "10.0.0.1")]
    assert found == ["127.0.0.1", "[::1]", "[::1]", "10.0.0.1"]


def test_another_port_is_tried_when_somebody_came_between(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Robbed(HeldPort):
        """Loses the first port that it holds."""

        robbers: ClassVar[list[socket.socket]] = []

        def hold(self) -> None:
            super().hold()
            if not self.robbers:
                self.robbers.append(server(self.port))

    monkeypatch.setattr(replica, "HeldPort", Robbed)

    async def scene(running: Running) -> None:
        (url,) = running.entry().urls
        assert port_of(url) != Robbed.robbers[0].getsockname()[1]
        running.supervisor.stop()

    # the robber answers nothing
    said, error = play(scene, health=replace(QUICK, timeout_s=1.0))
    Robbed.robbers[0].close()
    assert error is None
    assert any("trying another" in line for line in said)


@given(st.lists(st.floats(0, 100), max_size=60), st.integers(1, 6), st.floats(1, 300))
def test_never_more_restarts_than_allowed_within_the_window(
    gaps: list[float], most: int, window_s: float
) -> None:
    policy = RestartPolicy(first_s=1, longest_s=60, most=most, window_s=window_s)
    now, starts = 0.0, []
    for gap in gaps:
        now += gap
        wait_s = policy.after(now)
        within = [at for at in starts if now - at <= window_s]
        assert (wait_s is None) == (len(within) >= most)
        if wait_s is None:
            return
        assert wait_s == min(60, 2 ** len(within))
        starts.append(now)


def test_a_log_is_bounded_and_private(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "0.log", largest_bytes=50)
    for number in range(20):
        log(f"line {number}")
    log.close()
    assert log.path.stat().st_mode & 0o777 == 0o600
    assert log.path.stat().st_size <= 60
    assert (tmp_path / "0.log.1").exists()
    assert list(log.last)[-1] == "line 19"
    lost = LogFile(tmp_path / "no" / "0.log")
    lost("a line")
    assert list(lost.last) == ["a line"]


@given(st.lists(st.binary(max_size=12), max_size=8))
def test_lines_do_not_depend_on_how_they_arrive(pieces: list[bytes]) -> None:
    def read(parts: list[bytes]) -> list[str]:
        async def main() -> list[str]:
            stream = asyncio.StreamReader()
            found: list[str] = []
            task = asyncio.create_task(each_line(stream, found.append))
            for part in parts:
                stream.feed_data(part)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            stream.feed_eof()
            await task
            return found

        return asyncio.run(main())

    assert read(pieces) == read([b"".join(pieces)])


def test_an_endless_line_does_not_fill_the_memory() -> None:
    async def main() -> list[str]:
        stream = asyncio.StreamReader()
        found: list[str] = []
        task = asyncio.create_task(each_line(stream, found.append))
        for _ in range(5):
            stream.feed_data(b"x" * 50_000)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        stream.feed_eof()
        await task
        return found

    found = asyncio.run(main())
    assert "".join(found) == "x" * 250_000
    assert len(found) > 1


@pytest.mark.parametrize(
    ("answer", "well"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.1 503 No\r\n\r\n", False),
        (b"", False),
        (b"nonsense\n", False),
        (None, False),
    ],
)
def test_health(answer: bytes | None, well: bool) -> None:
    async def main() -> bool:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            assert (await reader.readline()) == b"GET /health HTTP/1.1\r\n"
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
            writer.close()

        async with await asyncio.start_server(serve, LOCAL, 0) as listening:
            return await healthy(LOCAL, listening.sockets[0].getsockname()[1], 0.2)

    assert asyncio.run(main()) is well


def test_nobody_is_not_healthy() -> None:
    held = HeldPort(LOCAL)
    held.hold()
    assert not asyncio.run(healthy(LOCAL, held.port, 1))
    held.close()
