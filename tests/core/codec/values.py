"""Instances of every class that has a text, and all that a program may hand on.

Hypothesis draws the seed of each: drawn choice by choice, a request would take seconds.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from random import Random
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from weft.core.content import Media
from weft.core.ports.model import ConcurrentAttention, ModelRequest, Placed
from weft.core.values import Message, ToolSpec, Usage

SEEDS = st.integers(0, 1 << 64)
TEXTS = ("", "a", "~", "~r", 'ü\x00\ud800\n"\\', "🌊", '{"~r":"x"}', "long " * 60, "longer " * 100)
NUMBERS = (0, 1, -1, 7, 1 << 70, -(1 << 63))
FLOATS = (0.0, -0.0, 0.1, 1e300, -5e-324, float("inf"), float("-inf"))
LENGTHS = (0, 0, 1, 2, 5, 70)
KINDS = ("tuple", "list", "dict", "odd", "set", "message", "scalar")


def value(rng: Random, depth: int) -> Any:
    kind = rng.choice(
        ["tuple", "list", "dict", "odd", "set", "message", "scalar"] if depth else ["scalar"]
    )
    count = rng.choice(LENGTHS if depth < 3 else (0, 1, 2, 3))
    match kind:
        case "tuple":
            return tuple(value(rng, depth - 1) for _ in range(count))
        case "list":
            return [value(rng, depth - 1) for _ in range(count)]
        case "dict":
            return {text(rng): value(rng, depth - 1) for _ in range(count)}
        case "odd":
            return {hashable(rng, 1): value(rng, depth - 1) for _ in range(count)}
        case "set":
            return rng.choice((set, frozenset))(hashable(rng, 2) for _ in range(count))
        case "message":
            return rng.choice((Message("user", text(rng)), Usage(1), instance(Message, rng)))
    return scalar(rng)


def scalar(rng: Random) -> Any:
    return rng.choice(
        (None, True, False, text(rng), rng.choice(NUMBERS), rng.choice(FLOATS), rng.random(),
         rng.randbytes(rng.choice((0, 3, 400))))
    )  # fmt: skip


def hashable(rng: Random, depth: int) -> Any:
    if depth and rng.random() < 0.3:
        return rng.choice((tuple, frozenset))(hashable(rng, depth - 1) for _ in range(3))
    return scalar(rng)


def text(rng: Random) -> str:
    return rng.choice(TEXTS) + "".join(chr(rng.randrange(0xD7FF)) for _ in range(rng.randrange(3)))


def instance(cls: type, rng: Random) -> Any:
    """An instance of a dataclass, by the annotations of its fields."""
    hints = get_type_hints(cls)
    if issubclass(cls, Media):
        heads = {"image": b"\x89PNG\r\n\x1a\n", "audio": b"fLaC", "file": b"%PDF-"}
        return cls(heads[cls.kind] + rng.randbytes(rng.choice((0, 3, 400))), name=text(rng))
    if cls is ConcurrentAttention:
        return ConcurrentAttention(text(rng), 3, rng.randrange(3), own=text(rng))
    fields = [field for field in dataclasses.fields(cls) if rng.random() < 0.8 or needed(field)]
    drawn = {field.name: of(hints[field.name], rng) for field in fields}
    if cls is ModelRequest:
        drawn |= asked(rng)
    if cls is ToolSpec and drawn.get("pure"):
        drawn["effect"] = "pure"
    return cls(**drawn)


def needed(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def asked(rng: Random) -> dict[str, Any]:
    """What a request may not have together."""
    schema = {"schema": {"$ref": "#"}, "grammar": None}
    grammar = {"schema": None, "grammar": text(rng)}
    output: dict[str, Any] = rng.choice((schema, grammar))
    if rng.random() < 0.5:
        turns = rng.choice((1, 2, 30))
        messages = tuple(instance(Message, rng) for _ in range(turns))
        return {"messages": messages, "prompt_token_ids": (), "placement": (), **output}
    ids = tuple(rng.randrange(50_000) for _ in range(rng.choice((1, 5, 700))))
    placement = (Placed(len(ids), 3, (0,)),)
    return {"messages": (), "prompt_token_ids": ids, "placement": placement, **output}


def of(hint: Any, rng: Random) -> Any:
    """A value that an annotation allows."""
    if isinstance(hint, NewType):
        return of(hint.__supertype__, rng)
    simple = {
        str: text, int: lambda rng: rng.choice(NUMBERS), float: lambda rng: rng.choice(FLOATS),
        bool: lambda rng: rng.random() < 0.5, types.NoneType: lambda rng: None,
        Any: lambda rng: value(rng, 2),
    }  # fmt: skip
    if hint is bytes:
        return rng.randbytes(rng.choice((0, 3, 400)))
    if hint in simple:
        return simple[hint](rng)
    if dataclasses.is_dataclass(hint):
        return instance(hint, rng)  # type: ignore[arg-type]
    return composed(get_origin(hint), get_args(hint), rng)


def composed(origin: Any, inside: tuple[Any, ...], rng: Random) -> Any:
    if origin in (Literal, Union, types.UnionType):
        choice = rng.choice(inside)
        return choice if origin is Literal else of(choice, rng)
    if origin is tuple and inside[-1] is Ellipsis:
        lengths = (0, 1, 2) if dataclasses.is_dataclass(inside[0]) else LENGTHS
        return tuple(of(inside[0], rng) for _ in range(rng.choice(lengths)))
    if origin is tuple:
        return tuple(of(one, rng) for one in inside)
    assert issubclass(origin, Mapping)
    return {text(rng): of(inside[1], rng) for _ in range(rng.choice((0, 1, 3)))}
