"""The draft that is expected to save most, from the places where the last tokens stood before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from weft.serving.vllm.drafting.chances import Chances
from weft.serving.vllm.drafting.concordance import Concordance, Occurrence

_PLACES: Final = 16
_LENGTHS: Final = 4
_SURE: Final = 0.95


class Step(NamedTuple):
    """A drafted token and the ground it stands on; None: a grammar leaves no other."""

    token: int
    ground: int | None


class Guesser:
    """Looks at runs of at most `longest` tokens; drafts while `least` is the chance to get there.

    After SuffixDecoding (arXiv 2411.04975): a run that matched is followed by what followed it most
    often. Of the lengths of match the one with the most expected tokens wins, by what `chances`
    says; of equals the longer one.
    """

    def __init__(self, longest: int, least: float) -> None:
        self.chances = Chances()
        self.least = least
        self._longest = longest

    def guess(
        self,
        sources: Iterable[Concordance],
        text: Sequence[int],
        most: int,
        forced: Sequence[int] = (),
    ) -> list[Step]:
        """At most `most` tokens after `text` and what is `forced` after it.

        What the first sources say counts first at a tie.
        """
        end = [*text[-self._longest :], *forced]
        found = [
            occurrence
            for source in sources
            for occurrence in source.occurrences(end, self._longest, _PLACES)
        ]
        best: list[Step] = []
        expected = 0.0
        for length in sorted({each.length for each in found}, reverse=True)[:_LENGTHS]:
            if expected >= most * _SURE:
                break
            places = [each for each in found if each.length >= length]
            steps, hoped = self._followed(places, length, most, forced)
            if hoped > expected:
                best, expected = steps, hoped
        return best

    def _followed(
        self, places: list[Occurrence], length: int, most: int, forced: Sequence[int]
    ) -> tuple[list[Step], float]:
        """What follows matches of at least `length`, and how much of it is expected to be right."""
        steps: list[Step] = []
        written = list(forced)
        reached, expected = 1.0, 0.0
        while places and len(steps) < most:
            nexts = [_at(each, written) for each in places]
            token = max(nexts, key=nexts.count)
            agreeing = nexts.count(token)
            if token < 0:
                break
            ground = self.chances.ground(length + len(steps), agreeing, len(nexts))
            reached *= self.chances[ground]
            if reached < self.least:
                break
            expected += reached
            steps.append(Step(token, ground))
            written.append(token)
            places = [
                each._replace(place=each.place + 1)
                for each, following in zip(places, nexts, strict=True)
                if following == token
            ]
        return steps, expected


def _at(each: Occurrence, written: Sequence[int]) -> int:
    """The token at a place; a text that still grows goes on with what was `written` after it."""
    beyond = each.place - len(each.text)
    if beyond < 0:
        return each.text[each.place]
    return written[beyond] if each.growing and beyond < len(written) else -1
