from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from weft.serving.gateway.json_body import read_json
from weft.serving.gateway.problem import RequestRefused
from weft.testing import FakeClock


def headers(length: str | None = None) -> Headers:
    said = {} if length is None else {"content-length": length}
    return Headers({"content-type": "application/json", **said})


def read(
    chunks: Iterable[bytes], length: str | None = None, most: int = 1000, ends: bool = True
) -> Any:
    """What `read_json` makes of a body in `chunks`; one that does not end stays silent."""
    waiting = list(chunks)
    given = list(waiting)

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.Event().wait()
        chunk = waiting.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(waiting) or not ends}

    async def main() -> Any:
        try:
            return await read_json(receive, headers(length), most, within_s=5)
        finally:
            read.taken = len(given) - len(waiting)  # type: ignore[attr-defined]

    return FakeClock().run(main())


def status(chunks: Iterable[bytes], **how: Any) -> int:
    with pytest.raises(RequestRefused) as raised:
        read(chunks, **how)
    return raised.value.problem.status


def test_any_split_gives_the_same_value() -> None:
    body = json.dumps({"a": ["ü", "🎉", None, 1.5]}, ensure_ascii=False).encode()
    for cut in range(len(body) + 1):
        assert read([body[:cut], body[cut:]]) == {"a": ["ü", "🎉", None, 1.5]}


def test_the_limit_holds_to_the_byte_whatever_the_header_says() -> None:
    body = json.dumps("x" * 98).encode()
    assert read([body], most=100) == "x" * 98
    assert status([body], most=99) == 413
    assert status([body], length="2", most=99) == 413
    assert status([body], length="100", most=99) == 413
    assert read([body], length="nonsense", most=100) == "x" * 98


def test_an_announced_flood_is_not_read_and_an_endless_one_not_to_its_end() -> None:
    assert status([b"x" * 50] * 100, length="5000", most=100) == 413
    assert read.taken == 0  # type: ignore[attr-defined]
    assert status([b"x" * 50] * 100, most=100) == 413
    assert read.taken < 20  # type: ignore[attr-defined]


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    assert status([b'{"a'], ends=False) == 408


def test_a_client_that_hangs_up_is_told_nothing() -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    with pytest.raises(ClientDisconnect):
        FakeClock().run(read_json(receive, headers(), 10, within_s=5))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        "{}".encode("utf-16"),
        b'{"a": NaN}',
        b"[Infinity]",
        b"[" * 65 + b"]" * 65,
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b"[" * 100_000,
        b'["\\ud800"]',
        b'{"\\udc00": 1}',
        b"1" * 6000,
    ],
)
def test_hostile_bodies_are_refused(body: bytes) -> None:
    assert status([body], most=1_000_000) == 400


def test_depth_within_reason_passes() -> None:
    assert read([b"[" * 60 + b"]" * 60]) is not None


def test_a_large_body_is_read_too() -> None:
    async def main() -> Any:
        body = json.dumps(["x" * 1000] * 400).encode()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        return await read_json(receive, headers(str(len(body))), 2**22, within_s=5)

    assert asyncio.run(main()) == ["x" * 1000] * 400
