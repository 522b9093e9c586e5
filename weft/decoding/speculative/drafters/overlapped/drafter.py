"""What a sequence is expected to go on with, drafted ahead of the text that is verified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafters.model.choice import Chosen
from weft.decoding.speculative.drafters.model.line import Line
from weft.decoding.speculative.method import Method


class AheadDrafter:
    """Implements `Drafter`: one sequence of an overlapped method.

    `ahead` is expected to follow the text: what is being verified, then what was drafted
    meanwhile. Tokens of the text are kept back until the draft model is at rest: its line is not to
    be touched while it reads.
    """

    def __init__(self, method: Method, line: Line) -> None:
        self.name = method.name
        self.line = line
        self.ahead: list[Chosen] = []
        self.growing: Sequence[Chosen] = ()
        """What is being drafted behind that now, as far as it is."""
        self.offered = 0
        """How many of `ahead` are being verified."""
        self.missed = False
        """Whether the text went on otherwise than expected: what is being drafted is in vain."""
        self.misses = 0
        """Rounds in a row in which it was so."""
        self.ended = False
        self._method = method
        self._news: list[int] = []

    def extend(self, tokens: Sequence[int]) -> None:
        seen = len(self._news)
        self._news += tokens
        known = [*self.ahead, *self.growing][seen : seen + len(tokens)]
        expected = [chosen.token for chosen in known]
        self.missed |= expected != list(tokens[: len(expected)])

    def propose(self, most: int) -> Draft:
        proposed = self._method.propose([(self, most)])[0]
        if isinstance(proposed, BaseException):
            raise proposed
        return proposed

    def settle(self) -> Settled:
        """The draft model is at rest: compare what was expected with what was written.

        Where the sequence has ended, nothing is expected any more.
        """
        held = 0
        for chosen, token in zip(self.ahead, self._news, strict=False):
            if chosen.token != token:
                break
            held += 1
        offered, rest = self.ahead[: self.offered], self.ahead[held:]
        wrong = held < len(self._news) and bool(rest)
        lost = rest if wrong or self.ended else []
        self.ahead = [] if wrong or self.ended else rest
        self.misses = self.misses + 1 if wrong else 0
        self.line.extend(self._news)
        written, self._news = tuple(self._news), []
        self.offered, self.missed = 0, False
        return Settled(written, tuple(offered), min(held, len(offered)), tuple(lost))


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """What came of `offered`: its first `accepted` tokens were written, of all that was `written`.

    `lost` are the expected tokens that came to nothing: what the target read in vain, then what it
    never read.
    """

    written: tuple[int, ...]
    offered: tuple[Chosen, ...]
    accepted: int
    lost: tuple[Chosen, ...]

    @property
    def thrown_away(self) -> int:
        """Lost tokens that the target never read."""
        return max(0, len(self.lost) - (len(self.offered) - self.accepted))
