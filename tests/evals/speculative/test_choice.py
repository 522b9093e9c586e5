"""The evaluation of choosing, on texts that nobody's model wrote."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from typing import cast

import pytest

from evals.engine.rows import Lookup, Row
from evals.speculative import auto, choice
from evals.speculative.choice import Known, compared, learnt, table
from evals.speculative.single import Model
from evals.speculative.taken import Taken
from tests.decoding.speculative.drafters.auto.arms import CPU, text
from weft.core.ports.clock import FakeClock


class Weightless:
    """No model is asked: its decoders look at tokens only."""

    network = None


MODEL = cast("Model", Weightless())
REPEATS = [Known(text(n, 40), list(islice(cycle(text(n, 40)), 80))) for n in range(3)]
NEW = [Known(text(n, 40), text(n + 100, 80)) for n in range(3)]


@pytest.fixture(scope="module")
def rows() -> Iterator[list[Row]]:
    """Drafts take no time: what they would take here is not what a test can hold on to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "Working", FakeClock)
        yield list(compared(MODEL, {"agent_quoting": REPEATS, "qa": NEW}, CPU))


def test_what_repeats_is_faster_and_what_is_new_is_not_slower(rows: list[Row]) -> None:
    figures = Lookup(rows)
    for state in choice.STATES:
        assert (figures("agent_quoting", state, "predicted_ratio") or 0.0) > 1.5
        assert (figures("qa", state, "predicted_ratio") or 0.0) > 0.95
        assert (figures("all", state, "slowest_case") or 0.0) > 0.95
    assert (figures("qa", "lookup", "drafting_steps") or 0.0) >= 0.0


def test_regret_is_against_the_best_of_every_text(rows: list[Row]) -> None:
    figures = Lookup(rows)
    for name in choice.SINGLES:
        assert (figures("all", name, "regret_to_oracle") or 0.0) >= -1e-9
        assert (figures("all", name, "regret_to_best_single") or 0.0) >= -1e-9
    assert min(figures("all", n, "regret_to_best_single") or 0.0 for n in choice.SINGLES) == 0.0


def test_the_table_has_every_case(rows: list[Row]) -> None:
    told = table(rows)
    assert "agent_quoting" in told
    assert "auto cold: " in told
    assert "lookup" in told


def test_what_is_learnt_is_of_all_cases() -> None:
    history = learnt(MODEL, {"agent_quoting": REPEATS, "qa": NEW}, CPU)
    value = history.as_json()
    assert {row[1] for row in cast("list[list[object]]", value["counts"])} == {"lookup", "suffix"}


def test_the_clock_is_compared_with_plain_decoding_of_the_same_prompts() -> None:
    plain = [Taken((1, 2, 3, 4), 4, 4.0), Taken((5, 6), 2, 2.0)]
    chosen = [Taken((1, 2, 3, 4), 2, 2.0, 2, 2), Taken((5, 6), 2, 2.5)]
    rows = list(
        auto._totals({"agent_quoting": (plain[:1], chosen[:1]), "qa": (plain[1:], chosen[1:])})
    )
    figures = Lookup(rows)
    assert figures("all", "auto", "wall_ratio_total") == pytest.approx(6.0 / 4.5)
    assert figures("all", "auto", "slowest_case") == pytest.approx(0.8)
    assert figures("agents", "auto", "wall_ratio_total") == pytest.approx(2.0)
    assert figures("all", "auto", "identical_outputs") == 1.0
    assert "agents" in auto.table(rows)
