"""Results that are kept and used again: what makes inputs equal, how long, and broken stores."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.engine.virtual_run import (
    WatchedClock,
    after,
    assert_nothing_left,
    echo,
    ended,
    fail,
    give,
    node,
    play,
    script,
)
from weft.core.errors import ModelUnavailable
from weft.core.events import CacheMissed, NodeLogged, NodeStarted
from weft.core.ids import NodeId
from weft.core.ports import ResultStore, StoreEntry
from weft.engine import (
    Edge,
    Expand,
    Graph,
    Inputs,
    NodeCache,
    NodeContext,
    NodeFn,
    Retry,
    Run,
    RunOptions,
    Skip,
    StreamedItems,
)
from weft.engine.graph.content_digest import key
from weft.engine.kinds import fold
from weft.testing import MemoryStore

CACHE = NodeCache("work-1")


class Counting:
    """A work that counts its calls and gives `value`, or what it received."""

    def __init__(self, value: Any = None, seconds: float = 1.0) -> None:
        self.calls = 0
        self._value = value
        self._seconds = seconds

    async def __call__(self, _: NodeContext, inputs: Inputs) -> Any:
        self.calls += 1
        await asyncio.sleep(self._seconds)
        return self.calls if self._value is None else self._value


def test_equal_inputs_are_worked_on_once() -> None:
    store, work = MemoryStore(), Counting()
    for expected in ("", "cache", "cache"):
        played = play(node("a", work, given={"x": [1]}, cache=CACHE), store=store)
        assert (played.value("a"), played["a"].via) == (1, expected)
    assert work.calls == 1
    assert played.result.wall_s == 0


@pytest.mark.parametrize(
    ("name", "given", "identity", "calls"),
    [
        ("other", {"x": 1}, "work-1", 1),
        ("a", {"x": 2}, "work-1", 2),
        ("a", {"y": 1}, "work-1", 2),
        ("a", {"x": 1}, "work-2", 2),
    ],
)
def test_what_a_result_depends_on(
    name: str, given: dict[str, int], identity: str, calls: int
) -> None:
    store, work = MemoryStore(), Counting()
    play(node("a", work, given={"x": 1}, cache=CACHE), store=store)
    play(node(name, work, given=given, cache=NodeCache(identity)), store=store)
    assert work.calls == calls


def test_without_a_store_or_a_cache_policy_nothing_is_kept() -> None:
    store, work = MemoryStore(), Counting()
    for kept_in in (store, None, store):
        play(node("a", work), store=kept_in)
    play(node("a", work, cache=CACHE))
    play(node("a", work, cache=CACHE))
    assert work.calls == 5


def test_a_kept_result_expires() -> None:
    clock, work = WatchedClock(), Counting()
    store = MemoryStore(clock)
    one = node("a", work, cache=NodeCache("w", ttl_s=10))
    for _ in range(2):
        play(one, store=store, clock=clock)
    assert work.calls == 1
    clock.advance(10)
    play(one, store=store, clock=clock)
    assert work.calls == 2


def test_none_is_a_result_too() -> None:
    store, work = MemoryStore(), Counting(seconds=0)

    async def nothing(context: NodeContext, inputs: Inputs) -> None:
        await work(context, inputs)

    for _ in range(2):
        assert play(node("a", nothing, cache=CACHE), store=store).value("a") is None
    assert work.calls == 1


@pytest.mark.parametrize("bad", [object(), lambda: 1, iter([1]), {1: object()}])
def test_inputs_without_stable_content_are_not_cached(bad: Any) -> None:
    store, work = MemoryStore(), Counting()
    for _ in range(2):
        assert play(node("a", work, given={"x": bad}, cache=CACHE), store=store)["a"].ok
    assert work.calls == 2


class Hostile:
    """Raises whenever it is looked at."""

    @property
    def model_dump(self) -> Any:
        raise RuntimeError("do not look")

    def __repr__(self) -> str:
        raise RuntimeError("do not look")


class Model(BaseModel):
    n: int

    def model_dump(self, **_: Any) -> Any:
        raise RuntimeError("cannot")


@pytest.mark.parametrize("bad", [Hostile(), {Hostile()}, Model(n=1)], ids=["1", "2", "3"])
def test_inputs_that_raise_when_looked_at_do_not_fail_the_node(bad: Any) -> None:
    cached = node("a", Counting(), given={"x": bad}, cache=CACHE)
    assert play(cached, node("b", give(1)), store=MemoryStore()).result.status == "succeeded"


def test_inputs_that_contain_themselves_are_not_cached() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert key(CACHE, {"x": loop}) is None


@dataclass(frozen=True)
class Point:
    x: Any


class Colour(Enum):
    RED = 1


class Word(StrEnum):
    ONE = "1"


class Record(BaseModel):
    x: int


def test_different_contents_never_share_a_key() -> None:
    different: list[Any] = [
        *(None, True, False, 0, 1, 1.0, -1, "1", "", "null", "true"),
        *([], [1], ["1"], [[1]], {}, {1: 2}, {"1": 2}, {"1": "2"}, {None: 1}, {"null": 1}),
        *(b"", b"1", ["bytes", "31"], set(), {1}, {"1"}, ["set", "1"], ["set", 1], ["map"]),
        *(Point(1), Point("1"), {"x": 1}, Colour.RED, "RED", Word.ONE, Record(x=1)),
        *([["x", 1]], ["list", 1], {"a": {"b": 1}}, {"a": 1, "b": 1}),
    ]
    keys = [key(CACHE, {"x": value}) for value in different]
    assert None not in keys
    assert len(set(keys)) == len(different)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_keys_are_equal_exactly_when_contents_are(a: Any, b: Any) -> None:
    same = repr(_sorted(a)) == repr(_sorted(b))
    assert (key(CACHE, {"x": a}) == key(CACHE, {"x": b})) == same


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _sorted(value[k]) for k in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def test_the_order_of_names_and_of_sets_does_not_matter() -> None:
    assert key(CACHE, {"a": 1, "b": {2, 1}}) == key(CACHE, {"b": {1, 2}, "a": 1})
    assert key(CACHE, {"a": (1, 2)}) == key(CACHE, {"a": [1, 2]})


def test_items_that_stream_in_are_no_stable_content() -> None:
    """The names of the items are the same in every run, what they hold is not."""
    assert key(CACHE, {"xs": StreamedItems((NodeId("m[0]"),))}) is None
    store = MemoryStore()

    def total(start: int) -> Any:
        async def work(context: NodeContext, inputs: Inputs) -> Expand:
            children = tuple(node(f"m[{i}]", after(1, start + i)) for i in range(2))
            return Expand(children, tuple(child.id for child in children), items=True)

        summing = fold(lambda a, b: a + b, 0, "xs")
        edge = Edge(NodeId("m"), "xs", stream=True)
        return play(node("m", work), node("f", summing, edge, cache=CACHE), store=store).value("f")

    assert (total(0), total(10)) == (1, 21)


class Broken:
    """A store in which everything goes wrong that may."""

    def __init__(self, error: BaseException | None = None, seconds: float = 0.0) -> None:
        self._error = error
        self._seconds = seconds

    async def get(self, key: str) -> StoreEntry | None:
        await self._fail()
        return None

    async def put(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        await self._fail()

    async def _fail(self) -> None:
        await asyncio.sleep(self._seconds)
        if self._error is not None:
            raise self._error

    async def aclose(self) -> None:
        return


def test_who_looks_up_and_finds_nothing_tells_the_key() -> None:
    store, one = MemoryStore(), node("a", give("A"), given={"x": 1}, cache=CACHE)
    played = play(one, store=store)
    wanted = key(CACHE, {"x": 1})
    assert [(e.node, e.key, e.at_s) for e in played.all(CacheMissed)] == [("a", wanted, 0)]
    kinds = [type(event) for event in played.events]
    assert kinds.index(CacheMissed) == kinds.index(NodeStarted) + 1
    assert wanted is not None
    assert asyncio.run(store.get(wanted)) is not None
    assert not play(one, store=store).all(CacheMissed), "the store has it now"


def test_every_attempt_looks_up() -> None:
    work = script(ModelUnavailable("away"), "A")
    played = play(node("a", work, cache=CACHE, retry=Retry(2)), store=MemoryStore())
    assert played.value("a") == "A"
    assert len(played.all(CacheMissed)) == 2


def test_who_does_not_look_up_or_gets_no_answer_misses_nothing() -> None:
    one = node("a", give("A"), cache=CACHE)
    assert not play(one).all(CacheMissed), "no store"
    assert not play(node("a", give("A")), store=MemoryStore()).all(CacheMissed), "no policy"
    unstable = node("a", give("A"), given={"x": object()}, cache=CACHE)
    assert not play(unstable, store=MemoryStore()).all(CacheMissed), "no key"
    assert not play(one, store=Broken(OSError("disk full"))).all(CacheMissed)
    late = node("a", give("A"), cache=CACHE, timeout_s=2)
    assert not play(late, store=Broken(seconds=100)).all(CacheMissed), "it ended meanwhile"


@pytest.mark.parametrize("error", [OSError("disk full"), TypeError("cannot hold it")])
def test_a_broken_store_does_not_fail_a_node_and_says_so(error: Exception) -> None:
    played = play(node("a", give("A"), cache=CACHE), store=Broken(error))
    assert played.value("a") == "A"
    assert played.result.status == "succeeded"
    assert [e.text for e in played.all(NodeLogged)] == [
        f"the cache cannot be read: {error}",
        f"the result is not cached: {error}",
    ]


def test_a_store_that_raises_cancelled_error_is_a_miss() -> None:
    played = play(node("a", give("A"), cache=CACHE), store=Broken(asyncio.CancelledError()))
    assert played.value("a") == "A"


def test_looking_up_counts_as_the_node_s_time_and_can_be_cancelled() -> None:
    work = Counting()
    played = play(node("a", work, cache=CACHE, timeout_s=2), store=Broken(seconds=100))
    assert played.error("a") == "NodeTimeout"
    assert work.calls == 0


def test_a_store_that_does_not_answer_does_not_hold_up_the_end_for_ever() -> None:
    class Slow(Broken):
        async def get(self, key: str) -> StoreEntry | None:
            return None

    clock = WatchedClock()
    one = Graph("g", [node("a", give("A"), cache=CACHE)])

    async def main() -> None:
        run = Run(one, RunOptions(grace_s=2), clock=clock, store=Slow(seconds=1e5))
        result = await ended(run)
        assert (result.value("a"), result.wall_s, result.leaked) == ("A", 2, ("a",))
        await asyncio.sleep(0)
        await assert_nothing_left(clock)

    clock.run(main())


def grown(work: NodeFn) -> NodeFn:
    async def growing(context: NodeContext, inputs: Inputs) -> Expand:
        child = node(f"{context.scope}/x", work)
        return Expand((child,), (child.id,))

    return growing


def test_a_composite_is_kept_as_a_whole() -> None:
    store, work = MemoryStore(), Counting("V")
    for nodes in ({"a", "a/x"}, {"a"}):
        played = play(node("a", grown(work), cache=CACHE), store=store)
        assert played.value("a") == ["V"]
        assert set(played.statuses) == nodes
    assert work.calls == 1


@pytest.mark.parametrize(
    "work", [fail(ValueError("x")), give(Skip()), fail(asyncio.CancelledError())]
)
@pytest.mark.parametrize("policy", [{}, {"default": "D"}, {"fallback": node("s", give("S"))}])
def test_only_a_node_s_own_success_is_kept(work: NodeFn, policy: dict[str, Any]) -> None:
    store = MemoryStore()
    play(node("a", work, cache=CACHE, on_failure="skip", **policy), store=store)
    played = play(node("a", give("fresh"), cache=CACHE), store=store)
    assert played.value("a") == "fresh"


def test_the_result_of_a_later_attempt_is_kept() -> None:
    store = MemoryStore()
    flaky = script(ModelUnavailable("x"), "second")
    play(node("a", flaky, cache=CACHE, retry=Retry(delay_s=1)), store=store)
    assert play(node("a", give("fresh"), cache=CACHE), store=store).value("a") == "second"


def test_what_is_kept_cannot_be_changed_by_who_received_it() -> None:
    async def spoil(_: NodeContext, inputs: Inputs) -> None:
        inputs["a"].append("spoilt")

    store = MemoryStore()
    for _ in range(2):
        play(node("a", give_new_list, cache=CACHE), node("b", spoil, "a"), store=store)
    assert play(node("a", give_new_list, cache=CACHE), store=store).value("a") == ["fresh"]


async def give_new_list(_: NodeContext, inputs: Inputs) -> list[str]:
    return ["fresh"]


def test_a_hit_feeds_what_depends_on_it() -> None:
    store: ResultStore = MemoryStore()
    for _ in range(2):
        played = play(node("a", Counting("A"), cache=CACHE), node("b", echo, "a"), store=store)
        assert played.value("b") == {"a": "A"}


def test_an_ordered_cache_tells_the_orders_of_mappings_apart() -> None:
    """A prompt writes a mapping in its own order: another order makes another prompt."""
    one, other = {"a": 1, "b": [{"c": 2, "d": 3}]}, {"b": [{"d": 3, "c": 2}], "a": 1}
    plain, ordered = NodeCache("x"), NodeCache("x", ordered=True)
    assert key(plain, {"value": one}) == key(plain, {"value": other})
    assert key(ordered, {"value": one}) != key(ordered, {"value": other})
    assert key(ordered, {"value": one}) == key(plain, {"value": one})  # sorted keys: as ever
    assert key(ordered, {"p": other, "q": 1}) == key(ordered, {"q": 1, "p": other})
    pairs = [{"a": 1, "b": 2}, {"b": 2, "a": 1}]
    assert key(ordered, {"value": pairs}) != key(ordered, {"value": pairs[::-1]})
