"""The draft with the highest expected saving: from earlier occurrences of the last tokens, the
success rate of such matches, and the cost of a drafted token.

A pass over n tokens takes b + a n seconds (a straight line through the latest passes). At the
present speed, a seconds are worth a certain number of tokens: the least probability at which a
drafted token pays. So a few rows can have long drafts, a full batch only very probable ones
(goodput, as in TurboSpec, arXiv 2406.14066).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from weft.serving.vllm.drafting.ngram_index import NgramIndex, Occurrence

_LONGEST: Final = 20
_SHARES: Final = (0.5, 0.8, 1.0)
_KINDS: Final = len(_SHARES) + 2
_PRIOR: Final = 8.0
_MEMORY: Final = 400.0


class MatchAcceptance:
    """The share of right tokens for each ground, the kind of evidence for a drafted token.

    The prior prefers longer matches and agreeing places. Tests more than some 400 back are
    forgotten.
    """

    def __init__(self) -> None:
        self._right = [_PRIOR * _guess(ground) for ground in range(_LONGEST * _KINDS)]
        self._tested = [_PRIOR] * (_LONGEST * _KINDS)

    def ground(self, length: int, agreeing: int, places: int) -> int:
        """Ground of a token that `agreeing` of `places` have, after a match of `length` tokens."""
        share = agreeing / places
        kind = sum(share >= bound for bound in _SHARES) + (share == 1.0 and places > 1)
        return min(length, _LONGEST - 1) * _KINDS + kind

    def __getitem__(self, ground: int) -> float:
        return self._right[ground] / self._tested[ground]

    def observe(self, ground: int, *, right: bool) -> None:
        """Record the test of a token on this ground."""
        if self._tested[ground] >= _MEMORY:
            self._tested[ground] /= 2
            self._right[ground] /= 2
        self._tested[ground] += 1.0
        self._right[ground] += right


def _guess(ground: int) -> float:
    length, kind = divmod(ground, _KINDS)
    share = (0.3, 0.65, 0.9, 1.0, 1.0)[kind]
    return share * (1.0 - 0.6 / (1 + length))


_PLACES: Final = 16
_LENGTHS: Final = 4
_SURE: Final = 0.95


class DraftStep(NamedTuple):
    """A drafted token and its ground; None for a forced token."""

    token: int
    ground: int | None


class SuffixMatchDrafter:
    """Matches runs of at most `longest` tokens; drafts tokens reached with chance `least` or more.

    After SuffixDecoding (arXiv 2411.04975): after a matching run comes the token that followed it
    most often. The match length with the most expected tokens wins, by `chances`; of equals the
    longer one.
    """

    def __init__(self, longest: int, least: float) -> None:
        self.chances = MatchAcceptance()
        self.least = least
        self._longest = longest

    def guess(
        self,
        sources: Iterable[NgramIndex],
        text: Sequence[int],
        most: int,
        forced: Sequence[int] = (),
    ) -> list[DraftStep]:
        """At most `most` tokens after `text` and its `forced` continuation.

        At a tie the earlier source wins.
        """
        end = [*text[-self._longest :], *forced]
        found = [
            occurrence
            for source in sources
            for occurrence in source.occurrences(end, self._longest, _PLACES)
        ]
        best: list[DraftStep] = []
        expected = 0.0
        for length in sorted({each.length for each in found}, reverse=True)[:_LENGTHS]:
            if expected >= most * _SURE:
                break
            places = [each for each in found if each.length >= length]
            steps, value = self._continue(places, length, most, forced)
            if value > expected:
                best, expected = steps, value
        return best

    def _continue(
        self, places: list[Occurrence], length: int, most: int, forced: Sequence[int]
    ) -> tuple[list[DraftStep], float]:
        """The continuation of matches of at least `length`, and its expected number of hits."""
        steps: list[DraftStep] = []
        written = list(forced)
        reached, expected = 1.0, 0.0
        while places and len(steps) < most:
            nexts = [_token_at(each, written) for each in places]
            token = max(nexts, key=nexts.count)
            agreeing = nexts.count(token)
            if token < 0:
                break
            ground = self.chances.ground(length + len(steps), agreeing, len(nexts))
            reached *= self.chances[ground]
            if reached < self.least:
                break
            expected += reached
            steps.append(DraftStep(token, ground))
            written.append(token)
            places = [
                each._replace(place=each.place + 1)
                for each, following in zip(places, nexts, strict=True)
                if following == token
            ]
        return steps, expected


def _token_at(each: Occurrence, written: Sequence[int]) -> int:
    """The token at a place; a growing text continues with what was `written` after it. Else -1."""
    beyond = each.place - len(each.text)
    if beyond < 0:
        return each.text[each.place]
    return written[beyond] if each.growing and beyond < len(written) else -1


_DECAY: Final = 0.98
_FEW: Final = 8.0
_OUTLIER: Final = 4.0
_DEAREST: Final = 0.8
_TRUST: Final = 8.0
"""Spread of n, in tokens squared, at which the line counts as much as the prior."""
_ALIKE: Final = 16.0
"""The prior: a pass without any token takes as long as this many tokens add."""


class DraftCost:
    """The least chance at which a token is drafted, never below `floor`."""

    def __init__(self, floor: float) -> None:
        self._floor = floor
        self._passes = self._n = self._s = self._nn = self._ns = self._tokens = 0.0

    def observe(self, read: int, seconds: float, written: int) -> None:
        """A pass over `read` tokens wrote `written` tokens. Outliers are ignored."""
        if self._passes > _FEW and seconds > _OUTLIER * self._s / self._passes:
            return
        self._passes = _DECAY * self._passes + 1
        self._n = _DECAY * self._n + read
        self._s = _DECAY * self._s + seconds
        self._nn = _DECAY * self._nn + read * read
        self._ns = _DECAY * self._ns + read * seconds
        self._tokens = _DECAY * self._tokens + written

    def least(self) -> float:
        """The chance at which a drafted token pays for itself."""
        if self._passes < _FEW or not self._s > 0.0:
            return self._floor
        return min(max(self._floor, self._token_s() * self._tokens / self._s), _DEAREST)

    def _token_s(self) -> float:
        """a: what one more token adds. With equal passes, the prior."""
        n, s = self._n / self._passes, self._s / self._passes
        spread = max(self._nn / self._passes - n * n, 0.0)
        leaning = self._ns / self._passes - n * s
        slope = (leaning + _TRUST * s / (n + _ALIKE)) / (spread + _TRUST)
        return min(max(slope, 0.0), s / n)
