"""The text, reasoning and ids of one answer, kept together while they arrive."""

from __future__ import annotations

from dataclasses import replace

from weft.core.ports.model import ReasoningDelta, TextDelta
from weft.serving.openai.chunk import Choice, Delta
from weft.serving.text import FoundCall, Piece, Splitter

_NOTHING = Delta()


class Speech:
    """Take the parts in order. Ids come with the text that they spell, at once or later."""

    def __init__(self, splitter: Splitter, most: int = 0) -> None:
        """`most`: how many of the largest log probabilities there are to be for each token."""
        self._splitter = splitter
        self._most = most
        self._waiting_ids: list[int] = []
        self._waiting_logprobs: list[float] = []
        self._waiting_largest: list[tuple[float, ...]] = []
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._token_ids: list[int] = []
        self._logprobs: list[float] = []
        self._largest: list[tuple[float, ...]] = []

    @property
    def text(self) -> str:
        """The answer so far, without reasoning and calls."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return "".join(self._reasoning)

    @property
    def token_ids(self) -> tuple[int, ...]:
        """All ids so far, those of reasoning and calls included."""
        return tuple(self._token_ids)

    @property
    def logprobs(self) -> tuple[float, ...]:
        """One for each id, where they were asked for."""
        return tuple(self._logprobs)

    @property
    def top_logprobs(self) -> tuple[tuple[float, ...], ...]:
        """The largest for each id, where they were asked for."""
        return tuple(self._largest)

    def take(self, choice: Choice) -> list[Piece]:
        """What one part of the answer adds."""
        part = choice.delta or choice.message or _NOTHING
        ids = choice.token_ids or ()
        logprobs = choice.logprobs.values() if choice.logprobs else ()
        largest = choice.logprobs.largest(self._most) if choice.logprobs else ()
        self._token_ids += ids
        self._logprobs += logprobs
        self._largest += largest
        self._waiting_ids += ids
        self._waiting_logprobs += logprobs
        self._waiting_largest += largest
        pieces: list[Piece] = [ReasoningDelta(part.thought)] if part.thought else []
        pieces += self._splitter.feed(part.content or choice.text or "")
        if self._splitter.holding:
            return self._kept(pieces)
        return self._kept(self._with_ids(pieces))

    def end(self) -> list[Piece]:
        """What was held back, now that nothing follows."""
        return self._kept(self._with_ids(self._splitter.end()))

    def _with_ids(self, pieces: list[Piece]) -> list[Piece]:
        """`pieces` with the ids that waited, in the first one that can carry them."""
        ids, logprobs = tuple(self._waiting_ids), tuple(self._waiting_logprobs)
        if not ids and not logprobs:
            return pieces
        largest = tuple(self._waiting_largest)
        self._waiting_ids.clear()
        self._waiting_logprobs.clear()
        self._waiting_largest.clear()
        for at, piece in enumerate(pieces):
            match piece:
                case TextDelta():
                    carrier: Piece = TextDelta(piece.text, ids, logprobs, largest)
                case ReasoningDelta():
                    carrier = replace(piece, token_ids=ids)
                case _:
                    continue
            return [*pieces[:at], carrier, *pieces[at + 1 :]]
        if self._splitter.thinking:
            return [ReasoningDelta("", ids), *pieces]
        return [TextDelta("", ids, logprobs, largest), *pieces]

    def _kept(self, pieces: list[Piece]) -> list[Piece]:
        for piece in pieces:
            match piece:
                case TextDelta(text):
                    self._text.append(text)
                case ReasoningDelta(text):
                    self._reasoning.append(text)
                case FoundCall():
                    continue
        return pieces
