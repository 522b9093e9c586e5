"""Sequences of which one is chosen, as a tree of choices that differ in their first character."""

from __future__ import annotations

from collections.abc import Sequence

from weft.decoding.diffusion.structure.parts import Choice, Part, Parts, Text, joined
from weft.decoding.diffusion.structure.prefix import common_prefix


def factored(ways: Sequence[Parts], key: tuple[object, ...]) -> tuple[Parts, ...]:
    """`ways`, those that begin with the same text put together; words are not cut."""
    groups: dict[str, list[Parts]] = {}
    for number, way in enumerate(ways):
        head = way[0] if way else None
        name = head.text[0] if isinstance(head, Text) else f"\0{number}"
        groups.setdefault(name, []).append(way)
    out: list[Parts] = []
    for name, group in groups.items():
        shared = _shared(group) if len(group) > 1 else ""
        out.extend([_together(group, shared, (*key, name))] if shared else group)
    return tuple(out)


def _shared(ways: Sequence[Parts]) -> str:
    """The text that all begin with, up to the last word or number in it."""
    texts = [way[0].text for way in ways if isinstance(way[0], Text)]
    shared = common_prefix(texts)
    while shared and shared[-1].isalnum():
        shared = shared[:-1]
    return shared


def _together(ways: Sequence[Parts], shared: str, key: tuple[object, ...]) -> Parts:
    """The text that all begin with, then a choice of how they go on."""
    distinct = tuple(dict.fromkeys(_after(way, len(shared)) for way in ways))
    if len(distinct) == 1:
        return joined((Text(shared), *distinct[0]))
    return Text(shared), Choice(key, lambda: factored(distinct, key))


def _after(way: Parts, length: int) -> Parts:
    head = way[0]
    assert isinstance(head, Text)
    rest: tuple[Part, ...] = way[1:]
    return (Text(head.text[length:]), *rest) if len(head.text) > length else rest
