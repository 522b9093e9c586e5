"""Each sampler by its published rule, on recorded samples."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.reasoning.sampler_replay import RecordedSample, replay
from weft.reasoning.samplers.adaptive import AdaptiveSampler, lead_probability
from weft.reasoning.samplers.deepconf import DeepConfSampler, percentile
from weft.reasoning.samplers.early_stopping import EarlyStoppingSampler
from weft.reasoning.samplers.fixed import FixedSampler
from weft.reasoning.samplers.parallel_probe import ParallelProbeSampler
from weft.reasoning.samplers.sampler import MakeSampler
from weft.reasoning.samplers.saturation import SaturationSampler
from weft.reasoning.samplers.shortest import ShortestSampler


def samples(keys: str, tokens: int = 10) -> list[RecordedSample]:
    return [RecordedSample(None if key == "-" else key, tokens) for key in keys]


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        (3, 0, 0.9375),
        (4, 0, 0.9688),
        (5, 1, 0.9375),
        (6, 1, 0.9648),
        (7, 1, 0.9805),
        (8, 2, 0.9673),
        (5, 5, 0.5),
    ],
)
def test_the_probability_of_a_lead(first: int, second: int, value: float) -> None:
    assert lead_probability(first, second) == pytest.approx(value, abs=5e-5)


@given(st.integers(0, 30), st.integers(0, 30))
def test_the_probability_is_the_integral_of_the_density(first: int, second: int) -> None:
    steps = 4000
    points = [(place + 0.5) / steps for place in range(steps)]
    density = [x**first * (1 - x) ** second for x in points]
    assert lead_probability(first, second) == pytest.approx(
        sum(density[steps // 2 :]) / sum(density), abs=1e-4
    )


def test_adaptive_stops_at_four_equal_answers_one_after_the_other() -> None:
    done = replay(AdaptiveSampler(40), samples("a" * 10))
    assert len(done.pool.branches) == 4
    assert done.critical_path_tokens == done.total_tokens == 40
    assert done.stop.why == "4 to 0 after 4 samples: sure to 0.969, above 0.95"


def test_adaptive_in_waves_tests_after_each_wave() -> None:
    done = replay(AdaptiveSampler(40, wave=8), samples("aabbabab" + "a" * 32))
    assert len(done.pool.branches) == 16
    assert done.critical_path_tokens == 20


def test_adaptive_ends_at_its_limit_and_counts_no_unread_answer() -> None:
    done = replay(AdaptiveSampler(6), samples("------"))
    assert done.stop.why == "all 6 samples are used up"


def test_windows_stop_at_the_first_unanimous_one() -> None:
    done = replay(EarlyStoppingSampler(12, 3), samples("aab" + "-" * 3 + "bbb" + "aaa"))
    assert len(done.pool.branches) == 9
    assert done.stop.why == "window 3 of 3 samples is unanimous"
    assert (
        replay(EarlyStoppingSampler(4, 3), samples("abab")).stop.why == "all 4 samples are used up"
    )


def test_short_takes_the_first_that_come_to_an_answer() -> None:
    recorded = [
        RecordedSample("a", 50),
        RecordedSample(None, 1),
        RecordedSample("b", 20),
        RecordedSample("c", 30),
    ]
    done = replay(ShortestSampler(4, 2), recorded)
    assert done.stop.voters == (2, 3)
    assert (done.critical_path_tokens, done.total_tokens) == (30, 30 + 1 + 20 + 30)
    assert done.cancelled_tokens == 30


def test_short_waits_for_all_when_too_few_come_to_an_answer() -> None:
    done = replay(ShortestSampler(3, 2), samples("a--"))
    assert done.stop.voters is None
    assert done.stop.why == "1 of 3 samples came to an answer"


def test_saturation_is_reached_sooner_where_samples_agree() -> None:
    agreed = replay(SaturationSampler(40, pilot=4, eps=0.05), samples("a" * 40))
    split = replay(SaturationSampler(40, pilot=4, eps=0.05), samples("abcdefgh" * 5))
    assert len(agreed.pool.branches) == 4
    assert 4 < len(split.pool.branches) <= 40
    assert "eps is 0.05" in agreed.stop.why


def confident(keys: str, lowest: Sequence[float], tokens: int = 10) -> list[RecordedSample]:
    return [
        RecordedSample(key, tokens, confidences=((tokens // 2, value),))
        for key, value in zip(keys, lowest, strict=True)
    ]


def test_deepconf_gives_up_what_falls_below_the_bar_of_the_warmup() -> None:
    recorded = confident("abc" + "bbab", [5.0, 3.0, 1.0, 2.0, 4.0, 6.0, 0.5])
    done = replay(DeepConfSampler(7, warmup=3, keep=50, window=5), recorded)
    assert [b.status for b in done.pool.branches[3:]] == [
        "cancelled",
        "finished",
        "finished",
        "cancelled",
    ]
    assert done.stop.voters == (0, 1, 4, 5)
    assert done.stop.weights == {0: 5.0, 1: 3.0, 4: 4.0, 5: 6.0}
    assert done.cancelled_tokens == 10
    assert "4 of 7 samples cleared the bar of 3.000" in done.stop.why


def test_deepconf_stops_after_a_warmup_that_agrees() -> None:
    done = replay(
        DeepConfSampler(9, warmup=3, keep=90, window=5), confident("aaa", [5.0, 3.0, 4.0])
    )
    assert done.stop.why.startswith("100% of the confident weight agree")


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20))
def test_percentiles_are_between_neighbours(values: list[float]) -> None:
    assert percentile(values, 0) == min(values)
    assert percentile(values, 100) == max(values)
    assert percentile([1.0, 2.0, 4.0], 75) == 3.0


def probed(*samples: tuple[str, int]) -> list[RecordedSample]:
    """Samples by the answers of their probes, the last of which they end with."""
    return [RecordedSample(probes[-1], tokens, tuple(probes)) for probes, tokens in samples]


def test_probing_stops_once_the_majority_has_settled() -> None:
    done = replay(ParallelProbeSampler(3, 10, warmup=9, stable=3), probed(*[("baaaaaaa", 80)] * 3))
    # The first two probes make one round; then three more with the same majority.
    assert done.critical_path_tokens == 50
    assert done.stop.voters == (0, 1, 2)
    assert done.pool.branches[0].opinion == "a"
    assert done.stop.why == "the majority is the same for 3 rounds of 10 tokens"


def test_probing_prunes_who_disagrees_for_too_long() -> None:
    recorded = probed(("aaaaaaaa", 80), ("aaaaaaaa", 80), ("bbbbbbbb", 80))
    done = replay(ParallelProbeSampler(3, 10, warmup=1, patience=2, stable=50), recorded)
    assert done.pool.branches[2].status == "cancelled"
    assert done.pool.branches[2].tokens == 40
    assert done.stop.voters == (0, 1)
    assert done.stop.why == "all 3 samples have ended or are pruned; 1 of 3 pruned"


@pytest.mark.parametrize(
    "make",
    [
        lambda: FixedSampler(0),
        lambda: AdaptiveSampler(0),
        lambda: AdaptiveSampler(4, threshold=0.2),
        lambda: EarlyStoppingSampler(4, 0),
        lambda: ShortestSampler(3, 4),
        lambda: SaturationSampler(3, pilot=4),
        lambda: SaturationSampler(3, pilot=1, eps=0),
        lambda: DeepConfSampler(3, warmup=4),
        lambda: DeepConfSampler(3, warmup=1, keep=0),
        lambda: DeepConfSampler(3, warmup=1, consensus=0.4),
        lambda: DeepConfSampler(3, warmup=1, window=0),
        lambda: ParallelProbeSampler(0),
        lambda: ParallelProbeSampler(1, warmup=-1),
    ],
)
def test_settings_out_of_range_are_refused(make: MakeSampler) -> None:
    with pytest.raises(ValueError, match=r"must|above 0"):
        make()


SAMPLERS: list[MakeSampler] = [
    lambda: FixedSampler(8),
    lambda: FixedSampler(8, cancel_decided=True),
    lambda: AdaptiveSampler(8),
    lambda: AdaptiveSampler(8, wave=3),
    lambda: EarlyStoppingSampler(8, 3),
    lambda: ShortestSampler(8, 3),
    lambda: SaturationSampler(8, pilot=2),
    lambda: DeepConfSampler(8, warmup=3, keep=50, window=4),
    lambda: ParallelProbeSampler(8, 5, warmup=1, patience=2, stable=3),
]
RECORDED = st.builds(
    RecordedSample,
    st.sampled_from(["a", "b", None]),
    st.integers(1, 40),
    st.lists(st.sampled_from(["a", "b", None]), max_size=6).map(tuple),
    st.lists(st.tuples(st.integers(1, 40), st.floats(0, 20)), max_size=3).map(
        lambda known: tuple(sorted(known))
    ),
)


@pytest.mark.parametrize("make", SAMPLERS)
@given(recorded=st.lists(RECORDED, min_size=8, max_size=8))
def test_every_sampler_comes_to_a_stop_within_its_limit(
    make: MakeSampler, recorded: list[RecordedSample]
) -> None:
    sampler = make()
    done = replay(sampler, recorded)
    assert done.stop.stop
    assert done.stop.why
    assert len(done.pool.branches) <= sampler.limit
    assert done.total_tokens <= sum(sample.tokens for sample in recorded)
    for index in done.stop.voters or ():
        assert done.pool.branches[index].status in ("finished", "cancelled")
