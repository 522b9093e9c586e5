from __future__ import annotations

import json
import math
import sys
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from hashlib import sha256
from random import Random
from typing import Any, NamedTuple, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.codec.values import SEEDS, instance
from tests.core.codec.values import value as any_value
from weft.core.calls import CallEvent, CallId, ModelCalled, ToolReturned
from weft.core.codec import (
    Opaque,
    decode,
    decode_all,
    encode,
    encode_all,
    opaque_in,
    reader,
    register,
)
from weft.core.codec.classes import KNOWN
from weft.core.errors import StoreError
from weft.core.events import Event, NodeFinished, NodeLogged, Outcome, RunFinished
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest
from weft.core.values import Message, Usage

NODE = NodeId("n")


class Apart:
    """Texts by the hash of what they say, as a journal keeps them."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def keep(self, text: str) -> str:
        name = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self.texts[name] = text
        return name

    def get(self, name: str) -> str:
        return self.texts[name]

    @property
    def size(self) -> int:
        return sum(map(len, self.texts.values()))


def shape(value: Any) -> Any:
    """The value with its types, so that True, 1 and 1.0 differ, and so do list and tuple."""
    if isinstance(value, dict):
        return dict, tuple((shape(key), shape(held)) for key, held in value.items())
    if isinstance(value, (list, tuple)):
        return type(value), tuple(shape(item) for item in value)
    if isinstance(value, (set, frozenset)):
        return type(value), frozenset(shape(item) for item in value)
    return type(value), value


def returned(value: Any) -> ToolReturned:
    return ToolReturned(NODE, 1, CallId("tool:0#0"), value, None, "done", 1.0)


def through(value: Any) -> Any:
    """`value` after it was kept in one piece, having checked that it is the same from pieces."""
    apart = Apart()
    whole = decode(encode(returned(value))).value
    assert shape(decode(encode(returned(value), apart.keep), apart.get).value) == shape(whole)
    return whole


@pytest.mark.parametrize("cls", sorted(KNOWN.values(), key=lambda cls: cls.__name__))
def test_every_class_comes_back(cls: type) -> None:
    @settings(max_examples=20)
    @given(SEEDS)
    def check(seed: int) -> None:
        value = instance(cls, Random(seed))
        assert decode(encode(value)) == value
        apart = Apart()
        assert decode(encode(value, apart.keep), apart.get) == value

    check()


def test_every_record_has_a_text() -> None:
    assert {*get_args(Event), *get_args(CallEvent)} <= set(KNOWN.values())


@settings(max_examples=300)
@given(SEEDS)
def test_values_come_back_with_their_types(seed: int) -> None:
    value = any_value(Random(seed), 4)
    assert shape(through(value)) == shape(value)
    assert opaque_in(value) is None


@settings(max_examples=100)
@given(SEEDS)
def test_texts_are_json_for_everybody(seed: int) -> None:
    value = any_value(Random(seed), 4)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text = encode(returned([value, math.inf, (math.nan,)]))
    json.loads(text, parse_constant=refuse)


@settings(max_examples=50)
@given(st.sets(st.text() | st.integers()))
def test_the_text_of_a_set_does_not_depend_on_its_order(value: set[Any]) -> None:
    other: set[Any] = set()
    for item in sorted(value, key=repr, reverse=True):
        other.add(item)
    assert encode(returned(value)) == encode(returned(other))


def test_what_is_not_finite_comes_back() -> None:
    value = decode(encode(returned([math.inf, -math.inf, math.nan, -0.0]))).value
    assert value[:2] == [math.inf, -math.inf]
    assert math.isnan(value[2])
    assert math.copysign(1, value[3]) == -1


@pytest.mark.parametrize("number", [1 << 9_999, -(1 << 40_000), (1 << 40_000) + 1], ids=range(3))
def test_integers_of_many_digits_come_back(number: int) -> None:
    assert through({"n": [number]}) == {"n": [number]}


def test_large_values_come_back() -> None:
    value = {"text": "tide " * 2_000_000, "bytes": bytes(1_000_000), "rows": list(range(100_000))}
    assert through(value) == value


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Pair(NamedTuple):
    left: int
    right: int


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Point:
    x: int


@pytest.mark.parametrize(
    "value",
    [Colour.RED, Level.HIGH, Pair(1, 2), Rude(), Point(1), object(), threading.Lock(), len, Usage,
     OrderedDict(a=1), bytearray(b"x"), 1j, range(3), ValueError("no")],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_foreign_objects_become_opaque(value: Any) -> None:
    found = through({"a": [(value,)]})["a"][0][0]
    assert isinstance(found, Opaque)
    assert found.type.endswith(type(value).__qualname__)
    assert opaque_in(returned({"a": [{found}]})) == found
    assert through(found) == found


def test_what_an_opaque_shows_is_cut() -> None:
    assert len(through(ValueError("x" * 100_000)).shown) <= 1000


def test_endless_and_deep_values_become_opaque() -> None:
    endless: list[Any] = []
    endless += [endless, {"again": endless}]
    deep: Any = 0
    for _ in range(50_000):
        deep = (deep,)
    for value in (endless, deep):
        found = decode(encode(returned([1, value])))
        assert isinstance(found.value, Opaque)
    nested: Any = 0
    for _ in range(21):
        nested = Outcome("succeeded", {"again": [nested]})
    assert through(nested) == nested
    assert isinstance(through([[nested]]), Opaque)
    wide = [[[] for _ in range(5)] for _ in range(40)]
    assert through(wide) == wide


def test_a_value_that_changes_while_it_is_written_does_not_break_the_run() -> None:
    class Meddler:
        def __repr__(self) -> str:
            moving[len(moving)] = "more"
            return "a meddler"

    moving: dict[Any, Any] = {"a": Meddler(), "b": 1}
    assert isinstance(decode(encode(returned(moving))).value, Opaque)


def test_a_field_that_does_not_fit_names_itself() -> None:
    with pytest.raises(StoreError, match=r"NodeLogged\.text"):
        encode(NodeLogged(NODE, 3, 1.0))  # type: ignore[arg-type]
    with pytest.raises(StoreError, match=r"Outcome\.status .*'done'"):
        encode(NodeFinished(NODE, Outcome("done"), 1.0))  # type: ignore[arg-type]
    with pytest.raises(StoreError, match=r"RunFinished\.usage"):
        encode(RunFinished("failed", None, (), 1.0))  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="Point"):
        encode(Point(1))


def test_a_known_class_that_is_misused_does_not_break_the_run() -> None:
    wrong = Message("user", None)  # type: ignore[arg-type]
    assert isinstance(decode(encode(returned([1, wrong]))).value, Opaque)


def test_classes_are_registered_once_under_their_name() -> None:
    @dataclass(frozen=True)
    class Tide:
        height_m: float
        notes: tuple[str, ...] = ()

    register(Tide)
    register(Tide)
    try:
        assert decode(encode(Tide(1.5, ("a",)))) == Tide(1.5, ("a",))
        assert through([Tide(2.0)]) == [Tide(2.0)]
        with pytest.raises(ValueError, match="Usage"):
            register(dataclass(frozen=True)(type("Usage", (), {})))
        with pytest.raises(TypeError):
            register(dataclass(type("Loose", (), {})))
    finally:
        del KNOWN["Tide"]


def test_defaults_are_left_out_and_come_back() -> None:
    text = encode(Message("user", "hi"))
    assert text == '{"~":"Message","role":"user","content":"hi"}'
    assert decode(text) == Message("user", "hi")


def conversation(turns: int) -> list[Message]:
    return [
        Message("user" if n % 2 == 0 else "assistant", f"message {n}: {'word ' * 60}")
        for n in range(2 * turns)
    ]


def kept_in(turns: int) -> tuple[Apart, int]:
    """All requests of a conversation, each of which repeats what was said: what that takes."""
    apart, messages = Apart(), conversation(turns)
    records = [
        ModelCalled(NODE, 1, CallId("m"), "m", ModelRequest(tuple(messages[: 2 * turn + 1])), 1.0)
        for turn in range(turns)
    ]
    texts = [encode(record, apart.keep) for record in records]
    assert [decode(text, apart.get) for text in texts] == records
    return apart, sum(map(len, texts)) + apart.size


def test_each_message_of_a_conversation_is_kept_once() -> None:
    apart, _ = kept_in(50)
    everything = "\n".join(apart.texts.values())
    for number in range(99):
        assert everything.count(f"message {number}:") == 1


def test_a_conversation_grows_with_what_is_new() -> None:
    said = sum(len(message.content) for message in conversation(25))
    sizes = {turns: kept_in(turns)[1] for turns in (25, 50, 100)}
    assert sizes[25] < 2.5 * said
    assert sizes[50] < 2.3 * sizes[25]
    assert sizes[100] < 2.3 * sizes[50]


def test_a_list_that_grows_shares_its_beginning() -> None:
    apart = Apart()
    for turns in range(40):
        encode(returned([f"entry {n}" for n in range(25 * turns)]), apart.keep)
    last = len(encode(returned([f"entry {n}" for n in range(25 * 39)])))
    assert apart.size < 8 * last  # and not 20 times, as without sharing


HOSTILE = [
    "", "{", "null", "[]", "3", '"NodeLogged"', "{}", '{"~":"os.system"}', '{"~":["NodeLogged"]}',
    '{"~":"NodeLogged"}', '{"~":"NodeLogged","node":"n","text":1,"at_s":1}',
    '{"~":"NodeLogged","node":"n","text":"t","at_s":"1"}',
    '{"~":"NodeLogged","node":"n","text":"t","at_s":1,"more":2}',
    '{"~":"NodeLogged","node":{"~r":"x"},"text":"t","at_s":1}',
    '{"~":"Outcome","status":"done"}', '{"~":"Outcome","status":["failed"]}',
    '{"~":"Outcome","status":"failed","value":{"~":"Path","x":1}}',
    '{"~":"Outcome","status":"failed","value":{"~x":1}}',
    '{"~":"Outcome","status":"failed","value":{"~s":[[1]]}}',
    '{"~":"Outcome","status":"failed","value":{"~s":3}}',
    '{"~":"Outcome","status":"failed","value":{"~d":[[1]]}}',
    '{"~":"Outcome","status":"failed","value":{"~d":[[[],1]]}}',
    '{"~":"Outcome","status":"failed","value":{"~b":"%%%"}}',
    '{"~":"Outcome","status":"failed","value":{"~b":"ü"}}',
    '{"~":"Outcome","status":"failed","value":{"~n":"1"}}',
    '{"~":"Outcome","status":"failed","value":{"~i":"zz"}}',
    '{"~":"Outcome","status":"failed","value":{"~i":3}}',
    '{"~":"Outcome","status":"failed","value":{"~l":{}}}',
    '{"~":"ModelRequest"}', '{"~":"ConcurrentAttention","group":"g","workers":1,"index":5}',
    '{"~":"Outcome","status":"failed","value":' + "[" * 100_000 + "]" * 100_000 + "}",
    '{"~":"Outcome","status":"failed","value":' + "9" * 5000 + "}",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_is_a_typed_error(text: str) -> None:
    before = set(sys.modules)
    with pytest.raises(StoreError, match="cannot be read"):
        decode(text)
    with pytest.raises(StoreError, match="cannot be read"):
        decode_all(f"[{text}]" if text else text)
    assert set(sys.modules) == before


def test_references_cannot_bring_a_reader_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_LARGEST", 1 << 22)
    node = '{"~":"Outcome","status":"failed","value":%s}'
    bomb = {str(n): f'[{{"~r":"{n + 1}"}},{{"~r":"{n + 1}"}}]' for n in range(40)}
    bomb["40"] = json.dumps("x" * (1 << 16))
    endless = {"a": '{"~r":"a"}', "b": '[{"~r":"b"}]', "c": '{"~l":[{"~r":"c"}]}'}
    with pytest.raises(StoreError, match="larger"):
        decode(node % '{"~r":"0"}', bomb.__getitem__)
    for name in endless:
        with pytest.raises(StoreError):
            decode(node % f'{{"~r":"{name}"}}', endless.__getitem__)
    with pytest.raises(StoreError):
        decode(node % '{"~t":{"~r":"c"}}', endless.__getitem__)


@settings(max_examples=200)
@given(SEEDS, st.data())
def test_damaged_texts_never_do_anything_else(seed: int, data: st.DataObject) -> None:
    text = encode(instance(NodeFinished, Random(seed)))
    at = data.draw(st.integers(0, len(text)))
    new = data.draw(st.sampled_from(["", "{", "}", "[", '"', "~", "0", "null", "~r", ":", ","]))
    end = data.draw(st.integers(at, min(len(text), at + 5)))
    with suppress(StoreError):
        decode(text[:at] + new + text[end:])


def test_many_values_at_once() -> None:
    values = [Message("user", "a"), Usage(1), NodeLogged(NODE, "x", 1.0)]
    assert decode_all(encode_all(values)) == values
    assert decode_all(encode_all([])) == []
