"""Knobs of recorded samples, computed exactly without a model call.

From n recorded samples of a case, what a vote over w <= n of them would have scored is a
U-statistic (Hoeffding 1948): the mean over all subsets of w samples, in all orders. It needs no
draws: subsets are counted by the number of their samples with each answer. Scores and tokens are
exact fractions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb
from typing import Final, Literal

from weft.core.errors import InputError
from weft.optimisation.objectives import pareto_front

VoteRule = Literal["majority", "quorum", "shortest", "any"]
RULES: Final[tuple[VoteRule, ...]] = ("majority", "quorum", "shortest", "any")
_ZERO: Final = Fraction(0)


@dataclass(frozen=True, slots=True)
class AnswerSample:
    """One recorded sample: its answer (None: none was given), and its tokens.

    `probes`: the answers that it would have given when cut off, by increasing tokens, each as
    (tokens, answer).
    """

    answer: str | None
    tokens: int
    probes: tuple[tuple[int, str | None], ...] = ()

    def cut(self, tokens: int) -> AnswerSample:
        """The sample, cut off after `tokens`: with the answer of the last probe until then."""
        if self.tokens <= tokens:
            return self
        known = [answer for at, answer in self.probes if at <= tokens]
        return AnswerSample(known[-1] if known else None, tokens)


@dataclass(frozen=True, slots=True)
class SampledCase:
    """The recorded samples of one case, and its right answer."""

    right: str
    samples: tuple[AnswerSample, ...]


@dataclass(frozen=True, slots=True)
class PostHocKnobs:
    """How a vote over recorded samples would be run.

    width   how many samples at most
    rule    majority: the most frequent answer, of equally frequent ones any with equal probability.
            quorum: sampling one after another ends once `quorum` samples agree; at `width` the
            majority counts. shortest: the answer of the shortest sample that has one. any: right if
            one of them is (pass@k), for a task whose answers can be checked
    quorum  for that rule
    cut     samples are cut off after so many tokens, where probes tell their answers; None: whole
    """

    width: int
    rule: VoteRule = "majority"
    quorum: int = 0
    cut: int | None = None

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise InputError(f"there is no rule {self.rule!r}", hint=f"there are: {RULES}")
        if self.width < 1 or (self.rule == "quorum" and not 1 <= self.quorum <= self.width):
            hint = "1 <= quorum <= width"
            raise InputError(f"no vote has width {self.width}, quorum {self.quorum}", hint=hint)


@dataclass(frozen=True, slots=True)
class PostHocScore:
    """What `knobs` come to: means over cases, subsets and orders.

    score    the share of right answers
    tokens   of all samples together
    longest  tokens of the longest sample: the wall time where they run side by side. For `quorum`,
             whose samples run one after another, it is that of all
    samples  how many were drawn
    """

    knobs: PostHocKnobs
    score: Fraction
    tokens: Fraction
    longest: Fraction
    samples: Fraction

    @property
    def point(self) -> tuple[Fraction, ...]:
        """Score, tokens and longest, oriented so that more is better."""
        return self.score, -self.tokens, -self.longest


def post_hoc(cases: Sequence[SampledCase], knobs: PostHocKnobs) -> PostHocScore:
    """The exact score of `knobs` on recorded samples. Raises: `InputError` for too few samples."""
    if not cases or any(len(case.samples) < knobs.width for case in cases):
        least = min((len(case.samples) for case in cases), default=0)
        raise InputError(f"width {knobs.width}: a case has {least} samples", hint="a smaller width")
    found = [case_score(case, knobs) for case in cases]
    count = len(found)
    return PostHocScore(
        knobs,
        sum((each.score for each in found), _ZERO) / count,
        sum((each.tokens for each in found), _ZERO) / count,
        sum((each.longest for each in found), _ZERO) / count,
        sum((each.samples for each in found), _ZERO) / count,
    )


def case_score(case: SampledCase, knobs: PostHocKnobs) -> PostHocScore:
    """The exact score of `knobs` on one case: see `post_hoc`."""
    samples = case.samples
    if knobs.cut is not None:
        samples = tuple(sample.cut(knobs.cut) for sample in samples)
    if knobs.rule == "quorum":
        return _quorum(samples, case.right, knobs)
    width = knobs.width
    lengths = [sample.tokens for sample in samples]
    score = _RULES[knobs.rule](samples, case.right, width)
    tokens = Fraction(width * sum(lengths), len(lengths))
    return PostHocScore(knobs, score, tokens, _longest(lengths, width), Fraction(width))


def grid(
    widths: Iterable[int],
    rules: Iterable[VoteRule] = ("majority",),
    quorums: Iterable[int] = (),
    cuts: Iterable[int | None] = (None,),
) -> Iterator[PostHocKnobs]:
    """All knobs with these values; those of `quorums` that fit a width."""
    for width, rule, cut in product(widths, rules, list(cuts)):
        if rule == "quorum":
            yield from (PostHocKnobs(width, rule, q, cut) for q in quorums if q <= width)
        else:
            yield PostHocKnobs(width, rule, cut=cut)


def front(found: Iterable[PostHocScore]) -> tuple[PostHocScore, ...]:
    """Those that no other dominates, in their order."""
    every = list(found)
    return tuple(every[at] for at in pareto_front({at: one.point for at, one in enumerate(every)}))


# -- subsets, counted by answer ----------------------------------------------------------------


def _longest(lengths: Sequence[int], width: int) -> Fraction:
    """The mean of the longest of `width` samples: an order statistic over all subsets."""
    ordered = sorted(lengths)
    ways = sum(length * comb(at, width - 1) for at, length in enumerate(ordered))
    return Fraction(ways, comb(len(ordered), width))


def _majority(
    samples: Sequence[AnswerSample],
    right: str,
    width: int,
    least: int = 1,
    most: int | None = None,
) -> Fraction:
    """The probability that the most frequent of `width` answers is right, with `least` to `most`.

    For each count g of right answers: subsets in which every other answer has at most g, by how
    many of them have exactly g (the ties).
    """
    counts = Counter(sample.answer for sample in samples)
    silent, own = counts.pop(None, 0), counts.pop(right, 0)
    total = _ZERO
    for g in range(least, min(own, width, own if most is None else most) + 1):
        ways = {(0, 0): comb(own, g)}  # (others drawn, ties): subsets
        for count in counts.values():
            ways = _drawn(ways, count, g, width - g)
        for (others, ties), number in ways.items():
            rest = width - g - others  # samples without an answer
            total += Fraction(number * comb(silent, rest), ties + 1)
    return total / comb(len(samples), width)


def _drawn(
    ways: dict[tuple[int, int], int], count: int, most: int, room: int
) -> dict[tuple[int, int], int]:
    """`ways` with 0 to `most` of the `count` samples of one more answer; `room` is the limit."""
    made: defaultdict[tuple[int, int], int] = defaultdict(int)
    for (others, ties), number in ways.items():
        for drawn in range(min(count, most, room - others) + 1):
            made[others + drawn, ties + (drawn == most)] += number * comb(count, drawn)
    return dict(made)


def _any(samples: Sequence[AnswerSample], right: str, width: int) -> Fraction:
    """The probability that one of `width` answers is right: pass@k of Chen et al. 2021."""
    wrong = sum(sample.answer != right for sample in samples)
    return 1 - Fraction(comb(wrong, width), comb(len(samples), width))


def _shortest(samples: Sequence[AnswerSample], right: str, width: int) -> Fraction:
    """The probability that the shortest of `width` samples that has an answer is right.

    Of equally short ones each has the same probability.
    """
    groups: defaultdict[int, list[bool]] = defaultdict(list)
    for sample in samples:
        if sample.answer is not None:
            groups[sample.tokens].append(sample.answer == right)
    others = len(samples)
    answered = sum(map(len, groups.values()))
    silent, later = others - answered, answered
    total = _ZERO
    for length in sorted(groups):
        group = groups[length]
        later -= len(group)
        pool = silent + later
        first = comb(pool + len(group), width) - comb(pool, width)  # subsets that begin here
        total += Fraction(first * sum(group), len(group))
    return total / comb(len(samples), width)


_RULES: Final[dict[str, Callable[[Sequence[AnswerSample], str, int], Fraction]]] = {
    "majority": _majority,
    "shortest": _shortest,
    "any": _any,
}


# -- samples one after another -----------------------------------------------------------------

_Sums = dict[int, tuple[int, Fraction]]
"""By the number of samples drawn: subsets, and the sum of their tokens."""
_Lengths = dict[str | None, list[int]]
"""The tokens of the samples with each answer."""


def _lengths(samples: Sequence[AnswerSample]) -> _Lengths:
    lengths: defaultdict[str | None, list[int]] = defaultdict(list)
    for sample in samples:
        lengths[sample.answer].append(sample.tokens)
    return dict(lengths)


def _quorum(samples: Sequence[AnswerSample], right: str, knobs: PostHocKnobs) -> PostHocScore:
    """Samples in a random order, until `quorum` of them agree or `width` are drawn.

    An answer a reaches the quorum q with sample t: q - 1 of the t - 1 before it are a's, of no
    other answer q or more, and the next one is a's.
    """
    number, q, width = len(samples), knobs.quorum, knobs.width
    lengths = _lengths(samples)
    score = tokens = drawn = _ZERO
    for answer, own in lengths.items():
        if answer is None or len(own) < q:
            continue
        others = {other: each for other, each in lengths.items() if other != answer}
        mean, subsets = Fraction(sum(own), len(own)), comb(len(own), q - 1)
        for rest, (ways, spent) in _below(others, q, width - q).items():
            before = q - 1 + rest
            chance = Fraction(
                (len(own) - q + 1) * subsets, (number - before) * comb(number, before)
            )
            score += chance * ways if answer == right else 0
            tokens += chance * (spent + ways * q * mean)
            drawn += chance * ways * (before + 1)
    ways, spent = _below(lengths, q, width).get(width, (0, _ZERO))
    subsets = comb(number, width)
    score += _majority(samples, right, width, most=q - 1)
    tokens += spent / subsets
    drawn += Fraction(ways * width, subsets)
    return PostHocScore(knobs, score, tokens, tokens, drawn)


def _below(lengths: _Lengths, q: int, room: int) -> _Sums:
    """Subsets of at most `room` samples in which no answer has q or more."""
    sums: _Sums = {0: (1, _ZERO)}
    for answer, own in lengths.items():
        most = len(own) if answer is None else min(len(own), q - 1)
        mean = Fraction(sum(own), len(own))
        made: _Sums = {}
        for drawn, (ways, spent) in sums.items():
            for more in range(min(most, room - drawn) + 1):
                factor = comb(len(own), more)
                before = made.get(drawn + more, (0, _ZERO))
                tokens = factor * (spent + ways * more * mean)
                made[drawn + more] = (before[0] + factor * ways, before[1] + tokens)
        sums = made
    return sums


# -- cascades ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CascadeScore:
    """A cascade: `width` cheap samples, and one dear one where fewer than `votes` of them agree.

    `score`, `tokens` (cheap and dear ones) and `asked`, how often the dear model is asked: means
    over cases, subsets and orders.
    """

    width: int
    votes: int
    score: Fraction
    tokens: tuple[Fraction, Fraction]
    asked: Fraction


def cascade(
    cheap: Sequence[SampledCase], dear: Sequence[SampledCase], width: int, votes: int
) -> CascadeScore:
    """The exact score of a cascade, from samples of both models for the same cases.

    Raises: `InputError` for other cases, too few samples, or `votes` that no `width` has.
    """
    if not cheap or [case.right for case in cheap] != [case.right for case in dear]:
        raise InputError("a cascade needs samples of both models", hint="for the same cases")
    if not 1 <= votes <= width or any(len(case.samples) < width for case in cheap):
        raise InputError(f"no vote has width {width} and {votes} votes", hint="see the samples")
    score = spent = used = asked = _ZERO
    for case, other in zip(cheap, dear, strict=True):
        count, subsets = len(case.samples), comb(len(case.samples), width)
        doubt = Fraction(
            _below(_lengths(case.samples), votes, width).get(width, (0, 0))[0], subsets
        )
        rights = [sample.answer == other.right for sample in other.samples]
        score += _majority(case.samples, case.right, width, least=votes)
        score += doubt * Fraction(sum(rights), len(rights))
        spent += Fraction(width * sum(sample.tokens for sample in case.samples), count)
        used += doubt * Fraction(sum(sample.tokens for sample in other.samples), len(rights))
        asked += doubt
    cases = len(cheap)
    return CascadeScore(width, votes, score / cases, (spent / cases, used / cases), asked / cases)
