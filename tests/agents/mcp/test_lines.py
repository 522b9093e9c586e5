"""Lines out of pieces: any cut gives the same lines, and long ones take no room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.agents.mcp.stdio import BoundedLineSplitter, OversizedLine


def lines_of(pieces: list[bytes], limit: int) -> list[bytes | None]:
    lines = BoundedLineSplitter(limit)
    found = [line for piece in pieces for line in lines.feed(piece)]
    return [None if isinstance(line, OversizedLine) else line for line in found]


@examples(200)
@given(st.lists(st.binary(max_size=12).map(lambda data: data.replace(b"x", b"\n"))), st.data())
def test_any_cut_gives_the_same_lines(pieces: list[bytes], data: st.DataObject) -> None:
    limit = data.draw(st.integers(1, 20))
    whole = b"".join(pieces)
    expected = [line if len(line) <= limit else None for line in whole.split(b"\n")[:-1]]
    assert lines_of(pieces, limit) == expected


def test_a_long_line_is_known_by_its_ends() -> None:
    lines = BoundedLineSplitter(10)
    found = []
    for piece in (b"begin", b"-" * 100_000, b"-" * 100_000, b"end\nnext\n"):
        found += lines.feed(piece)
    long, after = found
    assert isinstance(long, OversizedLine)
    assert long.head.startswith(b"begin")
    assert long.tail.endswith(b"end")
    assert len(long.head) + len(long.tail) <= 8192
    assert after == b"next"
