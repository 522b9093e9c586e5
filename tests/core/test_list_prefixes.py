from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.list_prefixes import SHORTEST, Items, ListPrefixCache
from weft.core.values import Message, ToolCall

_scalars = (
    st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, -0.0, 0.0, math.nan, 2**70, "", "1"])
)
_plain: st.SearchStrategy[Any] = st.recursive(
    _scalars | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=2) | st.integers(0, 2), inner, max_size=2)
    ),
    max_leaves=4,
)
_items = st.lists(_plain, min_size=SHORTEST, max_size=SHORTEST + 6)


def known(cache: ListPrefixCache[str], items: Items) -> int:
    """How many of `items` need not be looked at; they are remembered afterwards."""
    prefix = cache.find(items)
    if prefix is None:
        return 0
    assert (prefix.state or "") == "".join(map(repr, items[: prefix.length])), "another's state"
    new = "".join(map(repr, items[prefix.length :]))
    cache.keep(prefix, items, (prefix.state or "") + new)
    return prefix.length


def test_of_a_list_that_grew_the_beginning_is_known() -> None:
    cache: ListPrefixCache[str] = ListPrefixCache()
    talk = [{"role": "user", "content": f"message {n}"} for n in range(60)]
    assert [known(cache, talk[:end]) for end in (20, 22, 40, 60)] == [0, 20, 22, 40]
    assert known(cache, talk[:59]) == 0, "what grew took the place of what it was"
    assert known(cache, talk) == 60


def test_two_that_begin_alike_are_both_known() -> None:
    cache: ListPrefixCache[str] = ListPrefixCache()
    one = [f"a{n}" for n in range(20)]
    other = [*one[:15], "b", "c"]
    assert known(cache, one) == 0
    assert known(cache, other) == 0
    assert known(cache, [*one, 1]) == 20
    assert known(cache, [*other, 1]) == 17


@given(st.lists(_items, min_size=1, max_size=4), st.data())
def test_equal_only_counts_where_it_is_the_same(lists: list[list[Any]], data: Any) -> None:
    """1, 1.0 and True are equal, and so are 0.0 and -0.0: their texts are not."""
    cache: ListPrefixCache[str] = ListPrefixCache()
    for items in lists:
        known(cache, items)
        longer = items + data.draw(st.lists(_plain, max_size=3))
        assert known(cache, longer) == len(items)
        for place in range(len(items)):
            changed = [*items[:place], data.draw(_plain), *items[place + 1 :]]
            known(cache, changed)


def test_a_list_that_was_changed_in_its_place_is_another() -> None:
    cache: ListPrefixCache[str] = ListPrefixCache()
    talk: list[Any] = [["user", f"message {n}"] for n in range(20)]
    known(cache, talk)
    talk[3][1] = "something else"
    assert known(cache, talk) == 0


@pytest.mark.parametrize("odd", [b"1", bytearray(b"1"), memoryview(b"1"), {1}, object(), 1j])
def test_what_json_does_not_have_is_looked_at_each_time(odd: object) -> None:
    cache: ListPrefixCache[str] = ListPrefixCache()
    for items in ([odd] * 20, [["deep", {"k": [odd]}]] * 20, ["a", *([odd] * 20)]):
        assert known(cache, items) == 0
        assert known(cache, items) == 0


def test_bytes_and_a_buffer_of_them_are_not_mistaken_for_each_other() -> None:
    cache: ListPrefixCache[str] = ListPrefixCache()
    assert known(cache, ["a"] * 20) == 0
    for odd in (b"", bytearray(b"b"), memoryview(b"c")):
        assert known(cache, [*["a"] * 20, odd]) == 20
        assert known(cache, [*["a"] * 20, odd]) == 20, "only what is plain is remembered"


class Lying(str):
    __slots__ = ()


def test_messages_are_known_by_what_they_say() -> None:
    cache: ListPrefixCache[str] = ListPrefixCache()
    call = ToolCall("1", "look", "{}")

    def talk(end: int) -> tuple[Message, ...]:
        return tuple(Message("assistant", f"m{n}", (call,) if n % 3 else ()) for n in range(end))

    assert [known(cache, talk(end)) for end in (10, 12, 12)] == [0, 10, 12]
    changed = (*talk(9), Message("user", "m9"), *talk(12)[10:])
    assert known(cache, changed) == 0
    lists: Any = [call]
    for odd in (Message("user", "m", lists), Message("user", Lying("m"))):
        assert known(cache, (*talk(12), odd)) == 12
        assert known(cache, (*talk(12), odd)) == 12, "what may change is not remembered"


def test_it_stays_small() -> None:
    cache: ListPrefixCache[str] = ListPrefixCache(most_bytes=10_000)
    for number in range(1000):
        known(cache, [f"{number} {place}" for place in range(20)])
    assert 0 < cache._count <= 64
    assert cache._size_bytes <= 10_000
    known(cache, ["x" * 1000] * 20)
    assert cache._size_bytes <= 10_000
    assert cache._count == sum(map(len, cache._entries.values()))
    assert cache._size_bytes == sum(e.size_bytes for b in cache._entries.values() for e in b)
