"""Pieces of a stream without secrets, also where one comes in several of them.

Knows texts; what the pieces are is the business of who has them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from weft.core.redaction import Redactor

P = TypeVar("P")


class Text(NamedTuple):
    """The text of a piece, and which of the texts of a stream it goes on with."""

    channel: Hashable
    text: str


class StreamRedactor(Generic[P]):
    """Holds pieces back while their end may be the beginning of a secret; keeps their order.

    `text_of` a piece is None for one without. `with_text` is a piece with another text, of which
    something is hidden. A secret is told as part of the piece in which it begins.
    """

    def __init__(
        self,
        redactor: Redactor,
        text_of: Callable[[P], Text | None],
        with_text: Callable[[P, str], P],
    ) -> None:
        self._redactor = redactor
        self._text_of = text_of
        self._with_text = with_text
        self._held: list[P] = []

    def take(self, piece: P) -> list[P]:
        """The pieces, of those that came so far, in which nothing is left to be hidden."""
        self._held.append(piece)
        return self._released(final=False)

    def rest(self) -> list[P]:
        """All others: nothing more comes."""
        return self._released(final=True)

    def _released(self, *, final: bool) -> list[P]:
        channels: dict[Hashable, list[int]] = {}
        for index, piece in enumerate(self._held):
            if (text := self._text_of(piece)) is not None:
                channels.setdefault(text.channel, []).append(index)
        made = {channel: self._channel(where, final) for channel, where in channels.items()}
        count = len(self._held)
        while not all(
            sum(index < count for index in where) in made[channel].whole
            for channel, where in channels.items()
        ):
            count -= 1
        texts = {
            index: text
            for channel, where in channels.items()
            for index, text in zip(where, made[channel].texts, strict=True)
        }
        released = [self._clean(self._held[index], texts.get(index)) for index in range(count)]
        del self._held[:count]
        return released

    def _clean(self, piece: P, text: str | None) -> P:
        before = self._text_of(piece)
        return (
            piece if before is None or text in (None, before.text) else self._with_text(piece, text)
        )

    def _channel(self, where: list[int], final: bool) -> _Channel:
        texts = [said.text for index in where if (said := self._text_of(self._held[index]))]
        return _channel(self._redactor, texts, final)


class _Channel(NamedTuple):
    """Texts without secrets, and after how many of them nothing is begun that is not ended."""

    texts: list[str]
    whole: set[int]


def _channel(redactor: Redactor, texts: list[str], final: bool) -> _Channel:
    joined = "".join(texts)
    secrets = redactor.found(joined)
    begun = len(joined) if final else redactor.open_from(joined)
    made: list[str] = []
    whole, end = {0}, 0
    for number, text in enumerate(texts, 1):
        start, end = end, end + len(text)
        made.append(_cut(redactor, joined, start, end, secrets))
        if end <= begun and not any(a < end < b for a, b, _ in secrets):
            whole.add(number)
    return _Channel(made, whole)


def _cut(
    redactor: Redactor, joined: str, start: int, end: int, secrets: list[tuple[int, int, str]]
) -> str:
    """`joined` from `start` to `end`, with marks for the secrets that begin in it."""
    made, at = [], start
    for a, b, mark in secrets:
        if b <= start or a >= end:
            continue
        made.append(redactor.text(joined[at : max(at, a)]))
        made.append(mark if a >= start else "")
        at = min(b, end)
    made.append(redactor.text(joined[at:end]))
    return "".join(made)
