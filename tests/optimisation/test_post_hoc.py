"""Knobs of recorded samples: equal to brute force over all subsets in all orders, as fractions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.errors import InputError
from weft.optimisation.post_hoc import (
    AnswerSample,
    PostHocKnobs,
    PostHocScore,
    SampledCase,
    cascade,
    front,
    grid,
    post_hoc,
)

_answers = st.sampled_from(["a", "b", "c", None])
_samples = st.builds(
    AnswerSample,
    _answers,
    st.integers(5, 9),
    st.lists(_answers, min_size=2, max_size=2).map(lambda a: ((3, a[0]), (6, a[1]))),
)
_cases = st.builds(SampledCase, st.just("a"), st.lists(_samples, min_size=5, max_size=6).map(tuple))
KNOBS = tuple(
    grid(
        (1, 2, 3, 5),
        ("majority", "quorum", "shortest", "any"),
        quorums=(1, 2, 3),
        cuts=(None, 4, 6),
    )
)


def brute_force(cases: list[SampledCase], knobs: PostHocKnobs) -> PostHocScore:
    means = [_of_case(case, knobs) for case in cases]
    return PostHocScore(
        knobs, *(sum(each) / Fraction(len(cases)) for each in zip(*means, strict=True))
    )


def _of_case(case: SampledCase, knobs: PostHocKnobs) -> tuple[Fraction, ...]:
    samples = [s if knobs.cut is None else s.cut(knobs.cut) for s in case.samples]
    orders = list(permutations(samples, knobs.width))
    runs = [_of_order(list(order), case.right, knobs) for order in orders]
    return tuple(sum(each) / Fraction(len(orders)) for each in zip(*runs, strict=True))


def _of_order(
    order: list[AnswerSample], right: str, knobs: PostHocKnobs
) -> tuple[Fraction, int, int, int]:
    if knobs.rule == "quorum":
        seen: list[AnswerSample] = []
        for sample in order:
            seen.append(sample)
            votes = Counter(s.answer for s in seen if s.answer is not None)
            if votes and max(votes.values()) >= knobs.quorum:
                break
        total = sum(s.tokens for s in seen)
        return _vote(seen, right), total, total, len(seen)
    lengths = [s.tokens for s in order]
    if knobs.rule == "majority":
        score = _vote(order, right)
    elif knobs.rule == "any":
        score = Fraction(any(s.answer == right for s in order))
    else:
        known = [s for s in order if s.answer is not None]
        shortest = [s for s in known if s.tokens == min(k.tokens for k in known)]
        hits = sum(s.answer == right for s in shortest)
        score = Fraction(hits, len(shortest)) if shortest else Fraction(0)
    return score, sum(lengths), max(lengths), len(order)


def _vote(samples: list[AnswerSample], right: str) -> Fraction:
    votes = Counter(s.answer for s in samples if s.answer is not None)
    leaders = [a for a, count in votes.items() if count == max(votes.values())]
    return Fraction(right in leaders, len(leaders)) if leaders else Fraction(0)


@examples(15)
@given(st.lists(_cases, min_size=1, max_size=2))
def test_every_knob_and_the_front_equal_brute_force(cases: list[SampledCase]) -> None:
    exact = [post_hoc(cases, knobs) for knobs in KNOBS]
    slow = [brute_force(cases, knobs) for knobs in KNOBS]
    assert exact == slow
    assert front(exact) == front(slow)


@examples(30)
@given(_cases, st.lists(_samples, min_size=2, max_size=4).map(tuple))
def test_a_cascade_equals_brute_force(case: SampledCase, others: tuple[AnswerSample, ...]) -> None:
    dear = SampledCase("a", others)
    share = Fraction(sum(s.answer == "a" for s in others), len(others))
    for width, votes in ((1, 1), (3, 2), (3, 3), (4, 2)):
        found = cascade([case], [dear], width, votes)
        score = asked = Fraction(0)
        subsets = list(combinations(case.samples, width))
        for subset in subsets:
            tally = Counter(s.answer for s in subset if s.answer is not None)
            sure = bool(tally) and max(tally.values()) >= votes
            score += _vote(list(subset), "a") if sure else share
            asked += not sure
        assert found.score == score / len(subsets)
        assert found.asked == asked / len(subsets)


def test_a_cut_takes_the_answer_of_the_last_probe() -> None:
    sample = AnswerSample("a", 9, ((3, "b"), (6, None)))
    assert sample.cut(9) is sample
    assert sample.cut(5) == AnswerSample("b", 5)
    assert sample.cut(7) == AnswerSample(None, 7)
    assert sample.cut(2) == AnswerSample(None, 2)


def test_the_front_has_what_nothing_is_better_than() -> None:
    case = SampledCase("a", tuple(AnswerSample(answer, 1) for answer in "aab"))
    found = front(post_hoc([case], knobs) for knobs in grid((1, 2, 3)))
    assert [(each.knobs.width, each.score) for each in found] == [
        (1, Fraction(2, 3)),
        (3, Fraction(1)),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: PostHocKnobs(0),
        lambda: PostHocKnobs(3, "quorum", 4),
        lambda: PostHocKnobs(3, "best"),  # type: ignore[arg-type]
        lambda: post_hoc([SampledCase("a", (AnswerSample("a", 1),))], PostHocKnobs(2)),
        lambda: post_hoc([], PostHocKnobs(1)),
        lambda: cascade([], [], 1, 1),
    ],
)
def test_knobs_that_samples_do_not_have_are_refused(wrong: object) -> None:
    with pytest.raises(InputError):
        wrong()  # type: ignore[operator]
