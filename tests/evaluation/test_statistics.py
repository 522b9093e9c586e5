"""Tests and intervals beside brute force, and the sample sizes of the literature."""

from __future__ import annotations

from itertools import product
from math import comb
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.core.errors import InputError
from weft.evaluation.statistics import (
    bootstrap_mean,
    bootstrap_quantile_difference,
    bootstrap_quantile_p,
    cases_needed,
    detectable_difference,
    holm,
    mcnemar_exact,
    not_inferior,
    quantile_of,
    sign_flip,
)

SMALL = st.lists(st.integers(-4, 4).map(lambda number: number / 4), max_size=9)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_two_sided_binomial_test(a: int, b: int) -> None:
    total = a + b
    as_extreme = [k for k in range(total + 1) if abs(2 * k - total) >= abs(a - b)]
    assert mcnemar_exact(a, b) == pytest.approx(sum(comb(total, k) for k in as_extreme) / 2**total)
    assert mcnemar_exact(a, b) == mcnemar_exact(b, a)


@given(SMALL)
def test_sign_flip_counts_all_patterns_of_few_differences(values: list[float]) -> None:
    sums = [
        sum(sign * each for sign, each in zip(signs, values, strict=True))
        for signs in product((1, -1), repeat=len(values))
    ]
    told = sum(abs(each) >= abs(sum(values)) - 1e-9 for each in sums) / len(sums)
    assert sign_flip(values) == pytest.approx(told)


@pytest.mark.parametrize("wins", [20, 30, 38])
def test_sign_flip_of_whole_numbers_is_mcnemar(wins: int) -> None:
    drawn = sign_flip([1.0] * wins + [-1.0] * (50 - wins) + [0.0] * 30, draws=40_000)
    assert drawn == pytest.approx(mcnemar_exact(wins, 50 - wins), abs=0.01)


def test_sign_flip_rejects_equal_systems_as_often_as_its_level_says() -> None:
    random = Random(3)
    found = [sign_flip([random.gauss() for _ in range(14)]) < 0.05 for _ in range(400)]
    assert 0.02 < sum(found) / len(found) < 0.09


def test_bootstrap_mean_covers_the_mean() -> None:
    random, covered = Random(5), 0
    for seed in range(200):
        found = bootstrap_mean([random.random() for _ in range(60)], seed=seed, draws=300)
        covered += found.low <= 0.5 <= found.high
        assert found.low <= found.mean <= found.high
    assert 0.89 < covered / 200 < 0.99


def test_clusters_widen_the_interval_and_one_value_a_cluster_does_not() -> None:
    values = [float(at // 10 % 2) for at in range(100)]
    plain, clustered = bootstrap_mean(values), bootstrap_mean(values, groups=[*range(10)] * 10)
    by_ten = bootstrap_mean(values, groups=[at // 10 for at in range(100)])
    assert by_ten.high - by_ten.low > 2 * (plain.high - plain.low)
    assert clustered.high - clustered.low < 1e-9  # each cluster has the same mean
    assert bootstrap_mean(values, groups=range(100)) == plain


@given(st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=20), st.floats(0, 1))
def test_a_quantile_lies_where_the_share_of_values_does(values: list[float], share: float) -> None:
    found = quantile_of(values, share)
    assert min(values) <= found <= max(values)
    assert sum(each < found - 1e-9 for each in values) <= share * (len(values) - 1) + 1
    assert quantile_of(values, 0) == min(values)
    assert quantile_of(values, 1) == max(values)


def test_quantile_differences_find_a_shorter_tail_and_no_difference_of_equals() -> None:
    random = Random(1)
    base = [random.expovariate(1) for _ in range(200)]
    capped = [min(each, 2.0) for each in base]
    found = bootstrap_quantile_difference(capped, base, 0.95, draws=500)
    assert found.high < 0
    assert bootstrap_quantile_p(capped, base, 0.95, draws=500) < 0.01
    assert bootstrap_quantile_p(base, base, 0.95, draws=500) == 1.0
    same = bootstrap_quantile_difference(base, base, 0.95, draws=100)
    assert (same.low, same.mean, same.high) == (0, 0, 0)


def test_holm_is_the_example_of_the_textbook() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_lies_between_the_p_value_and_bonferroni(values: list[float]) -> None:
    adjusted = holm(values)
    for own, made in zip(values, adjusted, strict=True):
        assert own <= made <= min(1.0, own * len(values)) or made == max(adjusted)
    assert min(adjusted) == pytest.approx(min(1.0, min(values) * len(values)))


@pytest.mark.parametrize(
    ("difference", "discordance", "cases"), [(0.05, 0.2, 625), (0.1, 0.2, 155), (0.05, 0.3, 939)]
)
def test_sample_sizes_of_the_note(difference: float, discordance: float, cases: int) -> None:
    assert abs(cases_needed(difference, discordance) - cases) <= 1  # the note rounds z to 2 digits
    assert detectable_difference(cases + 1, discordance) == pytest.approx(difference, abs=1e-3)


def test_power_is_what_the_sample_size_promises() -> None:
    random, cases = Random(2), cases_needed(0.15, 0.3)
    found = 0
    for _ in range(400):
        drawn = [random.random() for _ in range(cases)]
        wins, losses = sum(each < 0.225 for each in drawn), sum(each > 0.925 for each in drawn)
        found += mcnemar_exact(wins, losses) < 0.05
    assert 0.7 < found / 400 < 0.88


@settings(max_examples=30)
@given(st.integers(1, 2000), st.floats(0.05, 1))
def test_more_cases_show_less(cases: int, discordance: float) -> None:
    found = detectable_difference(cases, discordance)
    assert detectable_difference(cases + 50, discordance) <= found <= discordance


def test_not_inferior_needs_the_bound_above_the_margin() -> None:
    assert not_inferior([0.0] * 50, 0.02)
    assert not not_inferior([1.0, -1.0] * 25, 0.02)
    assert not_inferior([0.0] * 400 + [1.0], 0.02)


def test_input_that_no_test_can_take_is_refused() -> None:
    with pytest.raises(InputError, match="at least 0"):
        mcnemar_exact(-1, 2)
    with pytest.raises(InputError, match="finite"):
        sign_flip([float("nan")])
    with pytest.raises(InputError, match="at least one value"):
        bootstrap_mean([])
    with pytest.raises(InputError, match="groups"):
        bootstrap_mean([1.0, 2.0], groups=["a"])
    with pytest.raises(InputError, match="equally many"):
        bootstrap_quantile_difference([1.0], [1.0, 2.0], 0.5)
    with pytest.raises(InputError, match="does not fit"):
        cases_needed(0.3, 0.2)
    with pytest.raises(InputError, match="between 0 and 1"):
        bootstrap_mean([1.0], level=1.0)
