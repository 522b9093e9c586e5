"""Frames survive any cut, and no bytes do more than raise."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.cluster.frames import MAX_FRAME_BYTES, frame, frames, read_frame
from weft.cluster.host import check_outcomes, error_of
from weft.core.errors import ClusterError, WeftError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
HEADERS = st.dictionaries(st.text(max_size=8), JSON, max_size=4)


@given(st.lists(st.tuples(HEADERS, st.binary(max_size=64)), max_size=4))
def test_frames_come_back(messages: list[tuple[dict[str, object], bytes]]) -> None:
    content = b"".join(frame(*message) for message in messages)
    assert list(frames(content)) == messages

    async def read() -> list[tuple[dict[str, object], bytes]]:
        reader = asyncio.StreamReader()
        for at in range(len(content)):
            reader.feed_data(content[at : at + 1])
        reader.feed_eof()
        found = []
        while (message := await read_frame(reader)) is not None:
            found.append(message)
        return found

    assert asyncio.run(read()) == messages


@given(st.binary(max_size=200))
def test_other_bytes_are_an_error(content: bytes) -> None:
    for read in (lambda: list(frames(content)), lambda: check_outcomes(content)):
        with suppress(ClusterError):
            read()


@given(JSON)
def test_what_is_no_error_raises_one(given_data: object) -> None:
    with pytest.raises(ClusterError):
        error_of(given_data)


def test_a_cut_frame_is_an_error_and_a_cut_stream_ends() -> None:
    content = frame({"kind": "x"}, b"body")
    with pytest.raises(ClusterError, match="cut off"):
        list(frames(content[:-1]))

    async def read() -> object:
        reader = asyncio.StreamReader()
        reader.feed_data(content[:-1])
        reader.feed_eof()
        return await read_frame(reader)

    assert asyncio.run(read()) is None


def test_a_frame_says_its_size_before_it_is_read() -> None:
    async def read() -> object:
        reader = asyncio.StreamReader()
        reader.feed_data((MAX_FRAME_BYTES + 1).to_bytes(4, "big") + bytes(4))
        return await read_frame(reader)

    with pytest.raises(WeftError, match="bytes"):
        asyncio.run(read())
