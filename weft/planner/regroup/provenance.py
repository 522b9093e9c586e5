"""Where the values in the arguments of calls come from: the result in which each appeared first."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from weft.planner.plan import Ref

LEAST_PART: Final = 4
"""The fewest characters of a part of a text that say where the text comes from."""
MOST_TRIVIAL: Final = 10
"""Whole numbers up to this occur by chance, as do truth values and empty values."""
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w])")
Certainty = Literal["sure", "part", "trivial"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The results in which a value may have appeared first, the earliest first.

    sure      the whole value is there, and not in the question nor in an earlier argument
    part      a part of a text or a number inside of one is there
    trivial   the value is there, and too common to tell
    """

    sources: tuple[Ref, ...]
    certainty: Certainty


def is_trivial(value: Any) -> bool:
    """Whether a value occurs by chance: truth values, null, small numbers, empty values."""
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return True
    if isinstance(value, int | float):
        return float(value).is_integer() and abs(value) <= MOST_TRIVIAL
    return isinstance(value, str) and value.strip().lower() in ("yes", "no", "true", "false", "ok")


def parts_of(
    value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """`value` and all of its parts, each with its path; outer ones first."""
    yield path, value
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from parts_of(inner, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from parts_of(inner, (*path, index))


@dataclass(slots=True)
class Provenance:
    """All values seen so far in one run: those that were given, and those of results."""

    question: str
    _given: set[str] = field(default_factory=set)
    _results: dict[str, list[Ref]] = field(default_factory=dict)
    _texts: list[tuple[str, Ref]] = field(default_factory=list)

    def add_arguments(self, arguments: Mapping[str, Any]) -> None:
        """Note what the model itself wrote: such a value does not come from a later result."""
        for _, value in parts_of(dict(arguments)):
            key = _key(value)
            if key not in self._results:
                self._given.add(key)

    def add_result(self, number: int, result: Any) -> None:
        """Note the result of step `number`."""
        for path, value in parts_of(result):
            if _key(value) in self._given:
                continue
            ref = Ref(number, path)
            self._results.setdefault(_key(value), []).append(ref)
            self._texts += [(text, ref) for text in _texts_in(value)]

    def origin(self, value: Any) -> Origin | None:
        """Where `value` comes from; None: from the question, or from the model."""
        if self._asked(value):
            return None
        found = self._results.get(_key(value), ())
        if found:
            return Origin(tuple(found), "trivial" if is_trivial(value) else "sure")
        if not isinstance(value, str | int | float) or is_trivial(value):
            return None
        wanted = set(_texts_in(value))
        inside = value if isinstance(value, str) else ""
        refs = [ref for text, ref in self._texts if text in wanted or _is_part(text, inside)]
        return Origin(tuple(dict.fromkeys(refs)), "part") if refs else None

    def _asked(self, value: Any) -> bool:
        """Whether the question has the value, as a word of its own."""
        if isinstance(value, Mapping | list | tuple):
            leaves = [
                inner
                for _, inner in parts_of(value)
                if not isinstance(inner, Mapping | list | tuple)
            ]
            return bool(leaves) and all(map(self._asked, leaves))
        if isinstance(value, bool) or value is None or value == "":
            return False
        texts = {str(value), _plain_number(value)} if not isinstance(value, str) else {value}
        return any(
            re.search(rf"(?<!\w){re.escape(text)}(?!\w)", self.question, re.IGNORECASE) is not None
            for text in texts
        )


def _is_part(text: str, inside: str) -> bool:
    """Whether either text is a part of the other, of at least four characters."""
    if min(len(text), len(inside)) < LEAST_PART:
        return False
    return text in inside or inside in text


def _texts_in(value: Any) -> Iterator[str]:
    """The texts by which a value is found in others: itself, and the numbers inside."""
    if isinstance(value, str):
        if len(value) >= LEAST_PART:
            yield value
        for found in _NUMBER.findall(value):
            number = found.replace(",", "")
            if not is_trivial(float(number)):
                yield _plain_number(float(number))
    elif isinstance(value, int | float) and not is_trivial(value):
        yield _plain_number(value)


def _plain_number(value: Any) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _key(value: Any) -> str:
    """Equal for equal JSON values; 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True, default=repr)
