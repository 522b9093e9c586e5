from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.acceptance import (
    AcceptedPath,
    DistributionAt,
    ExactMatch,
    LossyAcceptor,
    TypicalAcceptance,
)
from weft.decoding.speculative.draft import ROOT, DraftTree

TREE = DraftTree((0, 1, 2, 3), (ROOT, ROOT, 1, 2))


def laws(**by_node: list[float]) -> DistributionAt:
    names = {"root": ROOT, "a": 0, "b": 1, "c": 2, "d": 3}
    known = {names[name]: np.array(law) for name, law in by_node.items()}
    return lambda node: known[node]


def walked(law_at: DistributionAt, rule: TypicalAcceptance | None = None) -> AcceptedPath:
    return (rule or TypicalAcceptance()).walk_lossy(TREE, law_at, CounterRng(1), 0)


def test_the_likeliest_of_what_is_not_unlikely_is_followed() -> None:
    even = [0.25, 0.25, 0.25, 0.25]  # exp(-H) = 1/4: the least is 0.3 / 4 = 0.075
    walk = walked(laws(root=[0.2, 0.4, 0.3, 0.1], b=even, c=[0.9, 0.05, 0.03, 0.02]))
    assert walk.path == (1, 2)
    assert walk.tried == 4
    assert walk.bonus == CounterRng(1).token(np.array([0.9, 0.05, 0.03, 0.02]), 2)


def test_the_threshold_is_that_of_the_paper() -> None:
    law = [0.62, 0.06, 0.16, 0.16]
    entropy = -sum(p * np.log(p) for p in law)
    least = 0.3 * np.exp(-entropy)
    assert 0.09 < least < 0.16  # so epsilon decides
    tree = DraftTree((1,), (ROOT,))
    assert TypicalAcceptance().walk_lossy(tree, laws(root=law), CounterRng(1), 0).path == ()
    known = {ROOT: np.array(law), 0: np.array([1.0, 0.0, 0.0, 0.0])}
    assert TypicalAcceptance(epsilon=0.05).walk_lossy(
        tree, known.__getitem__, CounterRng(1), 0
    ).path == (0,)
    spread = np.full(50, 0.02)  # delta decides: 0.3 / 50 < 0.02
    known = {ROOT: spread, 0: spread}
    assert TypicalAcceptance().walk_lossy(tree, known.__getitem__, CounterRng(1), 0).path == (0,)
    assert (
        TypicalAcceptance(delta=1.0).walk_lossy(tree, known.__getitem__, CounterRng(1), 0).path
        == ()
    )


def test_greedy_laws_lose_nothing() -> None:
    generator = np.random.default_rng(3)
    for seed in range(50):
        rows = generator.normal(size=(5, 4)).astype(np.float32)

        def law_at(node: int, rows: NDArray[np.float32] = rows) -> NDArray[np.float64]:
            return SamplingParams(0.0).distribution(rows[node + 1])

        exact = ExactMatch().walk(TREE, law_at, CounterRng(seed), 0)
        lossy = walked(law_at)
        assert (lossy.path, lossy.bonus) == (exact.path, exact.bonus)


def test_it_is_of_another_type_than_lossless_rules() -> None:
    assert isinstance(TypicalAcceptance(), LossyAcceptor)
    assert not isinstance(ExactMatch(), LossyAcceptor)
    assert not hasattr(TypicalAcceptance(), "walk")


@pytest.mark.parametrize("wrong", [{"epsilon": -0.1}, {"delta": 1.1}, {"delta": float("nan")}])
def test_values_out_of_range(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="no acceptance"):
        TypicalAcceptance(**wrong)
