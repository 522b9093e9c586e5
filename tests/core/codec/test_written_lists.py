"""Lists that grow from batch to batch: what was written of them is not written again."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given

from tests.core.codec.values import SEEDS, value
from tests.profile import examples
from weft.core.calls import CallId, ModelCalled, ToolCalled, ToolReturned
from weft.core.codec import WrittenLists, decode_all, encode_all
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest
from weft.core.ports.journal import Record
from weft.core.values import Message

NODE, CALL = NodeId("n"), CallId("tool:0#0")


class Store:
    """What was kept, and what the last batch has offered."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.offered: list[str] = []

    def keep(self, text: str) -> str:
        name = f"{len(text)}-{hash(text) & 0xFFFFFFFF}"
        self.offered.append(text)
        self.texts[name] = text
        return name


def records(items: list[Any], messages: tuple[Message, ...]) -> list[Record]:
    found: list[Record] = [
        ToolReturned(NODE, 1, CALL, items, None, "done", 1.0),
        ToolCalled(NODE, 1, CALL, "t", {"talk": items, "n": len(items)}, "pure", "", 1.0),
        ToolReturned(NODE, 1, CALL, {"deep": [tuple(items)]}, None, "done", 1.0),
    ]
    if messages:
        request = ModelRequest(messages)
        ids = ModelRequest(prompt_token_ids=tuple(range(40 * len(messages))))
        found += [ModelCalled(NODE, 1, CALL, "m", each, 1.0) for each in (request, ids)]
    return found


@examples(30)
@given(SEEDS)
def test_the_text_is_the_same_and_all_that_it_refers_to_is_kept(seed: int) -> None:
    rng = Random(seed)
    with_lists, without, lists = Store(), Store(), WrittenLists()
    items: list[Any] = []
    messages: tuple[Message, ...] = ()
    for _ in range(rng.randint(1, 6)):
        items = [*items, *[value(rng, 2) for _ in range(rng.choice((0, 1, 3, 20)))]]
        if rng.random() < 0.2:
            items = [*items[: len(items) // 2], value(rng, 1), *items[len(items) // 2 :]]
        added = [
            Message("user", f"{n} " * rng.choice((1, 40, 200))) for n in range(rng.choice((1, 9)))
        ]
        messages = (*messages, *added)
        batch = records(items, messages)
        text = encode_all(batch, with_lists.keep, lists)
        assert text == encode_all(batch, without.keep)
        assert decode_all(text, with_lists.texts.__getitem__) == decode_all(
            text, without.texts.__getitem__
        )


def test_a_turn_offers_what_is_new_in_it() -> None:
    store, lists = Store(), WrittenLists()
    talk: list[Any] = []
    sizes = []
    for turn in range(200):
        talk = [*talk, *[{"role": role, "content": f"{role} {turn} " * 30} for role in "ab"]]
        store.offered.clear()
        encode_all(records(talk, ()), store.keep, lists)
        sizes.append((len(store.offered), sum(map(len, store.offered))))
    late, early = sizes[150:], sizes[20:70]
    assert max(late)[0] <= 3 * max(early)[0]
    assert max(characters for _, characters in late) <= 4 * max(c for _, c in early)
    assert max(late)[0] < 40


def test_what_no_record_refers_to_is_offered_again() -> None:
    """A part of a value that becomes a likeness: whoever removes what nothing refers to, may."""
    store, lists = Store(), WrittenLists()
    talk = [f"message {number} " * 40 for number in range(30)]
    deep: Any = "deep"
    for _ in range(100):
        deep = [deep]
    encode_all(records([talk, deep], ()), store.keep, lists)
    assert any("message 29" in text for text in store.offered)
    store.offered.clear()
    encode_all(records(talk, ()), store.keep, lists)
    assert any("message 29" in text for text in store.offered)


def test_what_was_forgotten_is_offered_again() -> None:
    store, lists = Store(), WrittenLists()
    talk = [f"message {number} " * 40 for number in range(30)]
    encode_all(records(talk, ()), store.keep, lists)
    store.offered.clear()
    encode_all(records(talk, ()), store.keep, lists)
    assert store.offered == []
    lists.clear()
    encode_all(records(talk, ()), store.keep, lists)
    assert len(store.offered) >= 30
