"""Feeds text to a splitter in pieces and folds what comes back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from weft.core.ports import ReasoningDelta, TextDelta
from weft.serving.text import FORMATS, FormatName, FoundCall, ReasoningStyle, Splitter

KNOWN = ("add", "get_time")


@dataclass(frozen=True)
class Folded:
    text: str
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()


def fold(
    pieces: Iterable[str],
    spelling: FormatName | None = None,
    reasoning: ReasoningStyle | None = None,
) -> Folded:
    splitter = Splitter(reasoning, FORMATS[spelling] if spelling else None, KNOWN)
    found = [part for piece in pieces for part in splitter.feed(piece)]
    found += splitter.end()
    assert splitter.end() == []
    assert not splitter.holding
    texts = [part for part in found if not isinstance(part, FoundCall)]
    assert all(part.text for part in texts), "a piece without text"
    return Folded(
        "".join(part.text for part in texts if isinstance(part, TextDelta)),
        "".join(part.text for part in texts if isinstance(part, ReasoningDelta)),
        tuple((part.name, part.arguments) for part in found if isinstance(part, FoundCall)),
    )


def cuts(text: str) -> st.SearchStrategy[list[str]]:
    """Every way to cut `text`."""
    points = st.lists(st.integers(0, len(text)), max_size=12).map(sorted)
    return points.map(lambda at: _cut(text, at))


def _cut(text: str, points: Sequence[int]) -> list[str]:
    return [text[a:b] for a, b in zip([0, *points], [*points, len(text)], strict=True)]
