"""Texts from outside: what is none, too much, slow or dead is cut off, and nobody waits for it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.serving.vllm.drafting.shared_texts import (
    LONGEST_LINE,
    MOST_TOKENS,
    DraftChannelServer,
    Text,
    from_line,
    share_text,
    to_line,
)

VOCABULARY = 100
PATIENCE_S = 60.0


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[DraftChannelServer]:
    ear = DraftChannelServer(tmp_path / "1.sock", VOCABULARY)
    try:
        yield ear
    finally:
        ear.close()


def heard(ear: DraftChannelServer, count: int) -> list[Text]:
    """So many texts, or as many as come while patience lasts."""
    texts: list[Text] = []
    until(lambda: len(texts) >= count, lambda: texts.extend(ear.received()))
    return texts


def until(true: Callable[[], bool], meanwhile: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true() and time.monotonic() < end:
        meanwhile()


def connected(path: Path) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(PATIENCE_S)
    peer.connect(str(path))
    return peer


@given(st.text(max_size=300), st.lists(st.integers(0, VOCABULARY - 1), max_size=MOST_TOKENS + 5))
def test_a_text_arrives_as_it_was_told_within_bounds(label: str, tokens: list[int]) -> None:
    line = to_line(label, tokens)
    assert len(line) <= LONGEST_LINE
    told = from_line(line.rstrip(b"\n"), VOCABULARY)
    assert told == (label[:200], tuple(tokens[-MOST_TOKENS:]))


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["label", "tokens"]), inner)
        ),
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_bytes_are_a_text_of_this_vocabulary_or_none(line: bytes) -> None:
    told = from_line(line, VOCABULARY)
    if told is not None:
        label, tokens = told
        assert isinstance(label, str)
        assert all(0 <= token < VOCABULARY for token in tokens)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[" * 50_000,
        b'{"label": "a", "tokens": [100]}',
        b'{"label": "a", "tokens": [-1]}',
        b'{"label": "a", "tokens": [true]}',
        b'{"label": "a", "tokens": [1.0]}',
        b'{"label": 1, "tokens": [1]}',
        b'{"tokens": [1]}',
        b'{"label": "' + b"a" * 201 + b'", "tokens": [1]}',
        b'{"label": "a", "tokens": [' + b"1," * MOST_TOKENS + b"1]}",
        b'{"label": "a", "tokens": [1]}' + b" " * LONGEST_LINE,
    ],
)
def test_what_is_no_text_is_nothing(line: bytes) -> None:
    assert from_line(line, VOCABULARY) is None


def test_every_proposer_of_a_folder_hears(tmp_path: Path) -> None:
    ears = [DraftChannelServer(tmp_path / f"{n}.sock", VOCABULARY) for n in range(2)]
    try:
        assert asyncio.run(share_text(tmp_path, "plan", [1, 2, 3])) == 2
        assert [heard(ear, 1) for ear in ears] == [[("plan", (1, 2, 3))]] * 2
    finally:
        for ear in ears:
            ear.close()
    assert list(tmp_path.iterdir()) == []


def test_nobody_there_is_no_error_and_dead_sockets_go(tmp_path: Path) -> None:
    assert asyncio.run(share_text(tmp_path / "none", "plan", [1, 2])) == 0
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    dead.bind(str(tmp_path / "dead.sock"))
    dead.close()
    (tmp_path / "file.sock").write_text("no socket")
    assert asyncio.run(share_text(tmp_path, "plan", [1, 2])) == 0
    assert not (tmp_path / "dead.sock").exists()


def test_a_proposer_that_does_not_read_keeps_nobody_waiting(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf:
        deaf.bind(str(tmp_path / "deaf.sock"))
        deaf.listen(0)
        full = [connected(tmp_path / "deaf.sock")]  # the queue of one is taken
        assert asyncio.run(share_text(tmp_path, "plan", list(range(90)) * 40)) == 0
        for peer in full:
            peer.close()


def test_garbage_ends_its_connection_and_no_other(ear: DraftChannelServer, tmp_path: Path) -> None:
    with connected(tmp_path / "1.sock") as bad, connected(tmp_path / "1.sock") as good:
        bad.sendall(b'{"label": "x", "tokens": [5, 6]}\n\xff\x00garbage\n')
        assert bad.recv(1) == b""
        good.sendall(to_line("a", [1, 2]))
        assert heard(ear, 2) == [("x", (5, 6)), ("a", (1, 2))]


def test_a_line_without_end_is_cut_off(ear: DraftChannelServer, tmp_path: Path) -> None:
    with (
        connected(tmp_path / "1.sock") as endless,
        pytest.raises((BrokenPipeError, ConnectionResetError)),
    ):
        endless.sendall(b"1" * LONGEST_LINE * 100)
    assert asyncio.run(share_text(tmp_path, "a", [1, 2])) == 1
    assert heard(ear, 1) == [("a", (1, 2))]


def test_only_so_many_connections_and_texts_at_once(
    ear: DraftChannelServer, tmp_path: Path
) -> None:
    peers = [connected(tmp_path / "1.sock") for _ in range(16)]
    try:
        with connected(tmp_path / "1.sock") as one_too_many:
            assert one_too_many.recv(1) == b""
        for number in range(50):
            for peer in peers:
                peer.sendall(to_line("a", [number, 1, 2]))
        until(lambda: ear.dropped > 0, lambda: None)
        assert ear.dropped > 0
        assert 256 <= len(list(ear.received())) <= 800
    finally:
        for peer in peers:
            peer.close()


def test_a_text_may_come_byte_by_byte(ear: DraftChannelServer, tmp_path: Path) -> None:
    with connected(tmp_path / "1.sock") as slow:
        for byte in to_line("a", [1, 2]):
            slow.sendall(bytes([byte]))
    assert heard(ear, 1) == [("a", (1, 2))]


def test_it_ends_with_its_thread_and_its_socket(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    ear = DraftChannelServer(tmp_path / "1.sock", VOCABULARY)
    with connected(tmp_path / "1.sock"):
        ear.close()
        ear.close()
    assert not set(threading.enumerate()) - before
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_too_long_is_said(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long"):
        DraftChannelServer(tmp_path / ("x" * 120), VOCABULARY)
