"""The replay of votes reproduces the reference figures, where the traces are at hand."""

from __future__ import annotations

import pytest

from evals.planning.effort import Skipped
from evals.reasoning.votes import Draw, changed_votes, draws, figures_of, systems_of


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[Draw]]:
    try:
        return draws()
    except Skipped as reason:
        pytest.skip(str(reason))


# accuracy, critical path and total in thousands of tokens, as simulated by others on these traces
REFERENCE = [
    ("aime24", 1, "fixed", 0.746, 14.2, 14),
    ("aime24", 16, "fixed_first_seen", 0.812, 25.0, 229),
    ("aime24", 16, "short1", 0.804, 8.5, 136),
    ("aime24", 16, "short3", 0.817, 10.2, 161),
    ("aime24", 16, "smv", 0.821, 25.0, 229),
    ("aime24", 64, "fixed_first_seen", 0.804, 30.1, 914),
    ("aime24", 64, "asc", 0.804, 230.7, 231),
    ("aime24", 64, "asc_waves", 0.804, 49.0, 276),
    ("aime24", 64, "esc", 0.804, 84.3, 459),
    ("hmmt25", 1, "fixed", 0.383, 20.1, 20),
    ("hmmt25", 16, "fixed_first_seen", 0.458, 30.4, 316),
    ("hmmt25", 16, "short1", 0.450, 11.5, 184),
    ("hmmt25", 16, "short3", 0.463, 14.5, 228),
    ("hmmt25", 64, "fixed_first_seen", 0.492, 35.0, 1267),
]


@pytest.mark.parametrize(("name", "n", "system", "accuracy", "path", "total"), REFERENCE)
def test_the_reference_figures_are_reproduced(
    drawn: dict[str, list[Draw]],
    name: str,
    n: int,
    system: str,
    accuracy: float,
    path: float,
    total: int,
) -> None:
    if name not in drawn:
        pytest.skip(f"there are no traces of {name}")
    found = figures_of(systems_of(n)[system], drawn[name])
    assert found.draws == 240
    assert found.right / found.draws == pytest.approx(accuracy, abs=6e-4)
    assert found.critical_path_tokens / found.draws / 1000 == pytest.approx(path, abs=0.051)
    assert found.total_tokens / found.draws / 1000 == pytest.approx(total, abs=0.51)


def test_cancelling_keeps_every_vote_and_cuts_the_critical_path(
    drawn: dict[str, list[Draw]],
) -> None:
    if "aime24" not in drawn:
        pytest.skip("there are no traces of aime24")
    systems = systems_of(16)
    assert changed_votes(drawn["aime24"], 16) == 0
    full = figures_of(systems["fixed"], drawn["aime24"])
    cut = figures_of(systems["cancel_decided"], drawn["aime24"])
    assert cut.right == full.right
    assert cut.critical_path_tokens <= 0.65 * full.critical_path_tokens
    assert cut.total_tokens < full.total_tokens
