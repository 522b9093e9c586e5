"""What every `ResultStore` must do. Subclass, say how to make one, and let pytest collect it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.core.ports import Clock, ResultStore, StoreEntry
from weft.testing import FakeClock

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


class ResultStoreConformance:
    """The suite. Values are JSON, which every store has to hold."""

    def make(self, clock: Clock) -> ResultStore:
        """A new, empty store whose wall time is `clock`'s."""
        raise NotImplementedError

    def run(self, body: Callable[[ResultStore, FakeClock], Awaitable[None]]) -> None:
        clock = FakeClock()

        async def main() -> None:
            async with aclosing(self.make(clock)) as store:
                await body(store, clock)

        clock.run(main())

    def test_a_missing_key_gives_none(self) -> None:
        async def body(store: ResultStore, clock: FakeClock) -> None:
            assert await store.get("nothing") is None

        self.run(body)

    def test_a_kept_none_is_not_nothing(self) -> None:
        async def body(store: ResultStore, clock: FakeClock) -> None:
            await store.put("k", None)
            assert await store.get("k") == StoreEntry(None)

        self.run(body)

    def test_values_come_back_as_they_were(self) -> None:
        @settings(max_examples=60, deadline=None)
        @given(values=st.dictionaries(st.text(st.characters(codec="utf-8")), JSON, max_size=4))
        def check(values: dict[str, Any]) -> None:
            async def body(store: ResultStore, clock: FakeClock) -> None:
                for key, value in values.items():
                    await store.put(key, value)
                for key, value in values.items():
                    entry = await store.get(key)
                    assert entry is not None
                    assert _shape(entry.value) == _shape(value)

            self.run(body)

        check()

    def test_the_last_writer_wins(self) -> None:
        async def body(store: ResultStore, clock: FakeClock) -> None:
            await store.put("k", 1, ttl_s=5)
            await store.put("k", 2)
            clock.advance(10)
            assert await store.get("k") == StoreEntry(2)

        self.run(body)

    def test_entries_end_with_their_time_to_live(self) -> None:
        async def body(store: ResultStore, clock: FakeClock) -> None:
            await store.put("short", 1, ttl_s=10)
            await store.put("long", 2, ttl_s=20)
            await store.put("ever", 3)
            clock.advance(9.5)
            assert await store.get("short") == StoreEntry(1)
            clock.advance(0.5)
            assert await store.get("short") is None
            assert await store.get("long") == StoreEntry(2)
            clock.advance(1e9)
            assert await store.get("long") is None
            assert await store.get("ever") == StoreEntry(3)

        self.run(body)

    def test_an_expired_key_can_be_kept_again(self) -> None:
        async def body(store: ResultStore, clock: FakeClock) -> None:
            await store.put("k", 1, ttl_s=1)
            clock.advance(2)
            await store.put("k", 2, ttl_s=1)
            assert await store.get("k") == StoreEntry(2)

        self.run(body)

    def test_nobody_can_mutate_what_is_kept(self) -> None:
        async def body(store: ResultStore, clock: FakeClock) -> None:
            value = {"list": [1]}
            await store.put("k", value)
            value["list"].append(2)
            first = await store.get("k")
            assert first == StoreEntry({"list": [1]})
            first.value["list"].append(3)
            assert await store.get("k") == StoreEntry({"list": [1]})

        self.run(body)

    def test_what_cannot_be_kept_is_a_type_error_and_harms_nothing(self) -> None:
        async def body(store: ResultStore, clock: FakeClock) -> None:
            await store.put("k", 1)
            with pytest.raises(TypeError):
                await store.put("k", (n for n in range(3)))
            assert await store.get("k") == StoreEntry(1)

        self.run(body)

    def test_many_tasks_at_once(self) -> None:
        async def body(store: ResultStore, clock: FakeClock) -> None:
            async def one(number: int) -> None:
                await store.put(f"k{number % 10}", number % 10)
                assert await store.get(f"k{number % 10}") == StoreEntry(number % 10)

            async with asyncio.TaskGroup() as group:
                for number in range(100):
                    group.create_task(one(number))

        self.run(body)

    def test_closing_twice_is_harmless(self) -> None:
        async def body(store: ResultStore, clock: FakeClock) -> None:
            await store.put("k", 1)
            await store.aclose()
            await store.aclose()

        self.run(body)


def _shape(value: Any) -> Any:
    """The value with its types, so that True, 1 and 1.0 differ."""
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return type(value), value
