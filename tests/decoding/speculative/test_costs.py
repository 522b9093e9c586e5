"""What passes take: measured on a clock that only passes move, and on a small network."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.local.playback import EXACT
from weft.core.ports.clock import FakeClock
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.speculative import pass_costs, user_cache
from weft.decoding.speculative.pass_costs import PassCosts, measured

SHORT, LONG = {1: 1.0, 2: 1.5}, {1: 2.0, 2: 4.0, 8: 10.0}


def test_times_between_contexts_are_straight() -> None:
    costs = PassCosts({100: SHORT, 300: LONG})
    assert [costs.second(at) for at in (0, 100, 200, 300, 999)] == [1.0, 1.0, 1.5, 2.0, 2.0]
    assert costs.curve(50)(2) == 1.5
    assert costs.curve(300)(2) == 2.0
    assert costs.curve(200)(2) == pytest.approx((1.5 + 4.0) / 2 / 1.5)


def test_a_context_without_a_long_pass_goes_on_as_it_did() -> None:
    # the short one is 4.5 at 8 tokens by its own slope
    assert PassCosts({100: SHORT, 300: LONG}).curve(200)(8) == pytest.approx((4.5 + 10.0) / 2 / 1.5)


@pytest.mark.parametrize("wrong", [{}, {5: {}}, {5: {2: 1.0}}, {5: {1: -1.0}}])
def test_costs_of_nothing_are_refused(wrong: dict[int, dict[int, float]]) -> None:
    with pytest.raises(ValueError, match=r"measured|a curve needs"):
        PassCosts(wrong)


class Passes:
    """Passes that take what a rule says; the first of all takes long."""

    def __init__(self, clock: FakeClock, each_s: float) -> None:
        self.made: list[tuple[int, int]] = []
        self._clock = clock
        self._each_s = each_s

    def __call__(self, context: int, tokens: int) -> None:
        slow = 10.0 if not self.made else 1.0
        self.made.append((context, tokens))
        self._clock.advance(slow * self._each_s * (1.0 + 0.1 * (tokens - 1) + context / 1000))


def test_the_rule_of_the_passes_is_found() -> None:
    clock = FakeClock()
    passes = Passes(clock, 0.001)
    costs = measured(passes, clock, 2.0, (0, 1000), (1, 2, 8))
    assert clock.now() < 2.1
    assert costs.second(500) == pytest.approx(0.0015)
    assert costs.curve(0)(8) == pytest.approx(1.7)
    assert costs.curve(1000)(2) == pytest.approx(1.05)


@given(st.floats(0.05, 3.0))
def test_slow_passes_do_not_take_longer_than_was_given(each_s: float) -> None:
    clock = FakeClock()
    costs = measured(Passes(clock, each_s), clock, 2.0, (0, 1000), (1, 2, 4, 64))
    # the first pass of all, and one and two tokens at the shorter context, are made in any case
    assert clock.now() <= max(2.0, (10.0 + 1.0 + 1.1 + 4.1) * each_s) + 1e-6
    assert costs.curve(0)(2) == pytest.approx(1.1)


def test_passes_take_turns() -> None:
    clock = FakeClock()
    passes = Passes(clock, 0.001)
    measured(passes, clock, 0.05, (0,), (1, 2, 3))
    assert [tokens for _, tokens in passes.made[:10]] == [1, 1, 2, 3, 3, 2, 1, 1, 2, 3]


def test_a_network_is_measured_once_and_its_rows_are_left_alone(
    tiny_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    monkeypatch.setattr(pass_costs, "_measured_costs", {})
    monkeypatch.setattr(pass_costs, "_WITHIN_S", 0.05)
    network = Network.load(tiny_path, EXACT)
    network.forward([Span(0, range(3), (5, 6, 7), 1)])
    before = network.column(0, 2)
    costs = pass_costs.costs_of(network)
    assert (network.column(0, 2) == before).all()
    assert costs.second(100) > 0.0
    assert pass_costs.costs_of(network) is costs
    (kept,) = (tmp_path / "speculative").iterdir()
    monkeypatch.setattr(pass_costs, "_measured_costs", {})
    assert pass_costs.costs_of(network).measured == costs.measured, "read from the file"
    for broken in ("", "[]", '{"a": 1}', '{"64": [[1, "x"]]}', '{"64": [[1, 1e999]]}', "[" * 9999):
        kept.write_text(broken, "utf-8")
        monkeypatch.setattr(pass_costs, "_measured_costs", {})
        assert pass_costs.costs_of(network).second(1) > 0.0, "measured again"
        assert user_cache.read(kept) is not None, "and written"


def test_a_shelf_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    assert not user_cache.write(tmp_path / "file" / "below.json", {})
    assert user_cache.read(tmp_path / "file" / "below.json") is None
