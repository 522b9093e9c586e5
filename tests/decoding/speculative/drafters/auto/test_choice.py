"""Choosing on texts that are known: what it costs where nothing helps, what it misses elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.speculative.known_text import Replay, replayed
from tests.decoding.speculative.drafters.auto.arms import CPU, PROMPT, Knowing, Slow, text
from tests.decoding.speculative.toy import ToyTarget
from weft.core.ports.clock import FakeClock
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.draft import DraftProposal, DraftTree
from weft.decoding.speculative.drafter import DraftRequest, PerSequenceMethod
from weft.decoding.speculative.drafters.auto.history import AcceptanceHistory
from weft.decoding.speculative.drafters.auto.method import Arm, AutoMethod
from weft.decoding.speculative.drafters.auto.sequence import SHARE, START
from weft.decoding.speculative.drafters.ngram.lookup import LookupDrafter
from weft.decoding.speculative.loop import DecodeLimits, DecodeLoop
from weft.decoding.speculative.pass_costs import PassCosts
from weft.decoding.speculative.speculation import SpeculativeSequence

Rule = Callable[[int], float]
PLAIN_S = 0.030


class Bench:
    """One method for text after text, with arms that are right by rules."""

    def __init__(self, free: dict[str, Rule], paid: dict[str, tuple[Rule, float]]) -> None:
        self.clock = FakeClock()
        self.history = AcceptanceHistory()
        self._free = free
        self._text: list[int] = []
        self._seed = 0
        arms = [Arm(self._single(name, rule), free=True) for name, rule in free.items()]
        self.slow = [
            Slow(name, self._knowing(name, rule), self.clock, level_s)
            for name, (rule, level_s) in paid.items()
        ]
        arms += [Arm(slow, free=False) for slow in self.slow]
        self._choice = AutoMethod(arms, CPU, self.history, clock=self.clock)

    def write(self, seed: int, tokens: int = 200, label: str = "") -> Replay:
        self._text, self._seed = text(seed, tokens), seed
        asked = DraftRequest(label=label)
        return replayed(self._choice, PROMPT, self._text, CPU, self.clock, asked)

    def only(self, name: str, seed: int, tokens: int = 200, most: int = 8) -> Replay:
        """The same text with one free arm alone, drafting `most` tokens every time."""
        self._text, self._seed = text(seed, tokens), seed
        single = self._single(name, self._free[name], most)
        return replayed(single, PROMPT, self._text, CPU, self.clock)

    def _single(self, name: str, rule: Rule, most: int = 16) -> PerSequenceMethod:
        return PerSequenceMethod(name, self._knowing(name, rule), most)

    def _knowing(self, name: str, rule: Rule) -> Callable[[], Knowing]:
        return lambda: Knowing(name, self._text, rule, self._seed * 31 + len(name))


def always(chance: float) -> Rule:
    return lambda place: chance


def slowdown(replay: Replay) -> float:
    """The time over that of plain decoding."""
    return replay.seconds / (replay.tokens * PLAIN_S)


@given(st.integers(0, 10**6), st.floats(0.0, 0.1), st.floats(0.0, 0.1))
@settings(max_examples=10)
def test_where_nothing_helps_next_to_nothing_is_drafted(seed: int, one: float, two: float) -> None:
    bench = Bench({"a": always(one), "other": always(two)}, {"model": (always(0.1), 0.01)})
    replays = [bench.write(seed + number) for number in range(3)]
    drafting = sum(replay.drafting for replay in replays)
    assert drafting <= 0.06 * sum(replay.tokens for replay in replays)
    assert max(map(slowdown, replays)) < 1.0 / 0.95
    assert sum(slow.asked for slow in bench.slow) <= 20


def test_a_drafter_that_is_mostly_right_is_found_at_once() -> None:
    bench = Bench({"a": always(0.1), "good": always(0.9)}, {})
    replay = bench.write(3)
    assert replay.forwards < 0.35 * replay.tokens
    best = min(bench.only("good", 3, most=most).seconds for most in range(1, 17))
    assert replay.seconds < 1.25 * best


def test_what_one_text_showed_the_next_begins_with() -> None:
    bench = Bench({"good": always(0.9)}, {})
    first = bench.write(1, tokens=12)
    for seed in range(2, 6):
        bench.write(seed)
    again = bench.write(1, tokens=12)
    assert again.forwards < first.forwards


def test_a_drafter_that_stops_being_right_is_dropped_within_the_text() -> None:
    bench = Bench({"a": lambda place: 0.95 if place < 100 else 0.0}, {})
    for seed in range(4):
        replay = bench.write(seed, tokens=300)
    plain_part = 200
    assert replay.drafting < 100 / 4 + 0.15 * plain_part
    assert replay.forwards < 300 - 60


@given(st.integers(0, 10**6), st.floats(0.0, 0.95), st.floats(0.0, 0.95))
@settings(max_examples=10)
def test_it_is_never_far_from_the_best_single_drafter(seed: int, one: float, two: float) -> None:
    bench = Bench({"a": always(one), "other": always(two)}, {})
    bench.write(seed)
    replay = bench.write(seed + 1, tokens=400)
    singles = [
        bench.only(name, seed + 1, tokens=400, most=most).seconds
        for name in ("a", "other")
        for most in (0, 1, 2, 4, 8, 16)
    ]
    assert replay.seconds < 1.12 * min(singles)
    assert slowdown(replay) < 1.0 / 0.95


@given(st.integers(0, 10**6), st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=4, max_size=4))
@settings(max_examples=15)
def test_no_text_loses_more_than_it_may_however_drafters_mislead(
    seed: int, parts: list[float]
) -> None:
    trust = [1.0] * 4
    bench = Bench({"a": lambda place: trust[place * 4 // 200]}, {})
    for number in range(3):
        bench.write(seed + number)
    trust = parts
    replay = bench.write(seed + 9)
    assert replay.seconds <= PLAIN_S * (replay.tokens * (1 + SHARE) + START) + 1e-9


def test_a_model_that_pays_is_found_and_one_that_is_too_slow_is_left() -> None:
    bench = Bench({}, {"model": (always(0.85), 0.003)})
    good = [bench.write(seed, tokens=400) for seed in range(4)]
    assert slowdown(good[0]) < 1.05
    assert slowdown(good[-1]) < 0.6
    slow = Bench({}, {"model": (always(0.85), 0.06)})
    assert max(slowdown(slow.write(seed, tokens=400)) for seed in range(4)) < 1.0 / 0.95


def test_nodes_that_differ_are_told_apart() -> None:
    right = {"quotes": 0.9, "thinks": 0.0}
    now = ""
    bench = Bench({"a": lambda place: right[now]}, {})
    for seed in range(16):
        now = "quotes" if seed % 2 else "thinks"
        bench.write(seed, label=now)
    now = "quotes"
    assert bench.write(99, tokens=20, label="quotes").drafting > 2
    now = "thinks"
    assert bench.write(99, tokens=20, label="thinks").drafting == 0


@given(st.integers(0, 300), st.sampled_from([SamplingParams(0.0), SamplingParams(0.8, top_p=0.9)]))
@settings(max_examples=30)
def test_the_text_is_that_of_plain_decoding(seed: int, shaping: SamplingParams) -> None:
    arms = [
        Arm(PerSequenceMethod("lookup", LookupDrafter, 8), free=True),
        Arm(PerSequenceMethod("two", lambda: LookupDrafter(2), 8), free=False),
    ]
    method = AutoMethod(arms, CPU, AcceptanceHistory(), clock=FakeClock())
    texts = []
    for chosen in (method, PerSequenceMethod("plain", LookupDrafter, 0)):
        target = ToyTarget(PROMPT, shaping)
        speculation = SpeculativeSequence(chosen, 5, DraftRequest(shaping))
        speculation.extend(PROMPT)
        decoding = DecodeLoop(target, speculation, CounterRng(seed), DecodeLimits(60))
        texts.append([token for step in decoding for token in step])
        assert speculation.fallback is None
    assert texts[0] == texts[1]


def test_a_step_of_many_rows_drafts_less_for_each() -> None:
    whole = text(5, 60)
    arms = [
        Arm(
            PerSequenceMethod("a", lambda: Knowing("a", whole, always(0.8), 1), 16),
            free=True,
        )
    ]
    choice = AutoMethod(arms, CPU, AcceptanceHistory(), clock=FakeClock())
    rows = [choice.begin() for _ in range(8)]
    for row in rows:
        row.extend(PROMPT)
        row.extend(whole[:41])

    def nodes(count: int) -> float:
        drafts = choice.propose([(row, 16) for row in rows[:count]])
        return (
            sum(len(draft.tree) for draft in drafts if not isinstance(draft, BaseException)) / count
        )

    assert nodes(1) > nodes(8)


@pytest.mark.parametrize("slope", [0.05, 0.3, 0.6])
def test_a_curve_that_is_wrong_is_put_right_by_the_clock(slope: float) -> None:
    """It says a tenth of a pass for each drafted token; a draft is right in one of three tokens."""
    clock, whole = FakeClock(), text(1, 600)
    flat = PassCosts({64: {1: 0.03, 64: 0.03 * 7.3}})
    single = PerSequenceMethod("a", lambda: Knowing("a", whole, always(0.33), 5), 16)
    choice = AutoMethod([Arm(single, free=True)], flat, AcceptanceHistory(), clock=clock)
    drafter = choice.begin()
    drafter.extend(PROMPT)
    at = 0
    while at < len(whole):
        (draft,) = choice.propose([(drafter, 16)])
        assert isinstance(draft, DraftProposal)
        clock.advance(0.03 * (1 + slope * len(draft.tree)))
        said = [*draft.tree.tokens, -1]
        right = next(n for n, token in enumerate(said) if [token] != whole[at + n : at + n + 1])
        drafter.extend(whole[at : at + right + 1])
        at += right + 1
    assert clock.now() < 1.08 * 0.03 * len(whole)
    if slope == 0.05:
        assert clock.now() < 0.83 * 0.03 * len(whole)


class Broken(LookupDrafter):
    """Works once."""

    def propose(self, most: int) -> DraftTree:
        self.propose = self.fail  # type: ignore[method-assign]
        return super().propose(most)

    def fail(self, most: int) -> DraftTree:
        raise RuntimeError(f"out of order after {most}")


def test_an_arm_that_fails_fails_its_row_only() -> None:
    drafters = iter([Broken(), LookupDrafter()])
    lookup = PerSequenceMethod("lookup", lambda: next(drafters), 8)
    choice = AutoMethod([Arm(lookup, free=True)], CPU, AcceptanceHistory(), clock=FakeClock())
    rows = [choice.begin(), choice.begin()]
    for row in rows:
        row.extend((1, 2, 3, 1, 2))
        row.extend((3,))
    broken, fine = choice.propose([(row, 8) for row in rows])
    assert isinstance(broken, RuntimeError)
    assert not isinstance(fine, BaseException)


def test_the_history_is_kept_and_read_again(tmp_path: Path) -> None:
    kept = tmp_path / "deep" / "history.json"
    whole = text(5, 60)
    arms = [
        Arm(
            PerSequenceMethod("a", lambda: Knowing("a", whole, always(0.9), 1), 16),
            free=True,
        )
    ]
    choice = AutoMethod(arms, CPU, AcceptanceHistory(), clock=FakeClock(), path=kept)
    replayed(choice, PROMPT, whole, CPU, FakeClock())
    choice.close()
    again = AcceptanceHistory()
    assert again.restore(json.loads(kept.read_text("utf-8")))
    assert again.chances(("", "kind 000"), "a")[2].each(1)[0] > 0.5


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"format": 2, "depths": 16, "counts": []},
        {"format": 1, "depths": 16, "counts": [["", "a", 0, [1.0], [1.0]]]},
        {"format": 1, "depths": 16, "counts": [["", "a", 9, [1.0] * 16, [1.0] * 16]]},
        {"format": 1, "depths": 16, "counts": [["", "a", 0, [1.0] * 16, [2.0] * 16]]},
        {"format": 1, "depths": 16, "counts": [["", "a", 0, [float("nan")] * 16, [0.0] * 16]]},
        {"format": 1, "depths": 16, "counts": [["", "a", 0, [True] * 16, [0.0] * 16]]},
    ],
)
def test_a_history_that_is_none_is_refused(value: object) -> None:
    history = AcceptanceHistory()
    assert not history.restore(value)
    assert len(history) == 0


def test_a_history_forgets_groups_that_were_not_used_for_long() -> None:
    history = AcceptanceHistory(groups=5)
    for node in range(50):
        history.chances(("", "kind 000", f"node {node}"), "a")[0].observe(1, 1)
    assert len(history) == 5
    assert history.chances(("",), "a")[0].tests > 40
