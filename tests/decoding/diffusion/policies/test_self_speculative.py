"""Self-speculation writes what one slot a pass writes, token for token, in fewer passes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.decoding.diffusion.lists import SAMPLED, answered, whole_answer
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.exact import NoCache
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import GREEDY, DenoisingRow, denoise_all
from weft.decoding.diffusion.policies.fixed_pace import EveryStep, FixedPacePolicy
from weft.decoding.diffusion.policies.ranking import Score
from weft.decoding.diffusion.policies.self_speculative import SelfSpeculativePolicy
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.query import Query
from weft.decoding.diffusion.schedules import FixedBlocks
from weft.decoding.diffusion.stops import FirstTerminator
from weft.decoding.sampling import CounterRng, SamplingParams

END, MASK = 8, 9
ORDERS: tuple[Score, ...] = ("leftmost", "confidence", "entropy", "margin")


class Consistent:
    """Any function of what is decided: every slot depends on all others, by chance."""

    traits = ModelTraits(10, MASK, frozenset({END}))

    def __init__(self, seed: int, spread: float, passes: int = 0) -> None:
        self._seed, self._spread = seed, spread

    def forward(self, queries: list[Query]) -> list[NDArray[np.float32]]:
        return [self._logits(query) for query in queries]

    def forget(self, row: int) -> None:
        """Nothing is kept."""

    def _logits(self, query: Query) -> NDArray[np.float32]:
        known = [int(n) for n in np.where(query.canvas.undecided, MASK, query.canvas.ids)]
        logits = np.array(
            [
                # a slot heeds its two neighbours, so that some drafts hold and some do not
                np.random.default_rng(
                    [self._seed, int(slot), *known[max(0, slot - 1) : slot + 2]]
                ).normal(0.0, self._spread, 10)
                for slot in query.wanted
            ],
            dtype=np.float32,
        ).reshape(-1, 10)
        logits[:, MASK] = -np.inf
        return logits


def texts(
    policy: FixedPacePolicy | SelfSpeculativePolicy,
    seed: int,
    shaping: SamplingParams,
    spread: float,
) -> DenoisingRow:
    plugs = DecoderConfig(policy, FixedBlocks(5), NoCache(), FirstTerminator())
    row = DenoisingRow(Canvas([1, 2], 9, MASK), plugs, Consistent.traits, CounterRng(seed), shaping)
    denoise_all([row], Consistent(seed, spread))  # type: ignore[arg-type]
    return row


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    order=st.sampled_from(ORDERS),
    rows=st.integers(1, 9),
    heat=st.sampled_from([0.0, 0.5, 1.0]),
    spread=st.sampled_from([0.0, 0.5, 3.0, 20.0]),
)
def test_the_text_is_that_of_one_slot_a_pass(
    seed: int, order: Score, rows: int, heat: float, spread: float
) -> None:
    shaping = SamplingParams(heat)
    plain = texts(FixedPacePolicy(EveryStep(1), order), seed, shaping, spread)
    drafted = texts(SelfSpeculativePolicy(order, rows), seed, shaping, spread)

    assert drafted.kept.tolist() == plain.kept.tolist()
    assert drafted.finish == plain.finish
    assert drafted.counters.forwards <= plain.counters.forwards


@pytest.mark.parametrize("operation", ["copy", "shuffle", "replace_random", "brackets"])
@pytest.mark.parametrize("shaping", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("order", ["leftmost", "confidence"])
def test_on_the_oracle_too(operation: str, shaping: SamplingParams, order: Score) -> None:
    plain = answered(
        operation, 4, 8, whole_answer(FixedPacePolicy(EveryStep(1), order)), shaping, room=2
    )
    drafted = answered(operation, 4, 8, whole_answer(SelfSpeculativePolicy(order)), shaping, room=2)

    for one, other in zip(plain, drafted, strict=True):
        assert one.row.kept.tolist() == other.row.kept.tolist()
        assert other.valid
        passes = other.row.counters.passes
        if operation == "copy":  # nothing depends on anything: one pass, and one batched pass
            assert dict(passes) == {"whole": 1, "look": 1}
        assert other.row.counters.forwards <= one.row.counters.forwards


def test_one_row_is_one_slot_a_pass_and_a_batched_pass_tells_its_tokens() -> None:
    one = answered("copy", 4, 1, whole_answer(SelfSpeculativePolicy(rows=1)))[0].row.counters
    all_rows = answered("copy", 4, 1, whole_answer(SelfSpeculativePolicy()))[0].row.counters

    assert one.forwards == 4
    assert all_rows.forwards == 2
    assert one.tokens == all_rows.tokens


def test_no_chain_of_random_slots() -> None:
    with pytest.raises(ValueError, match="random"):
        SelfSpeculativePolicy("random")
    with pytest.raises(ValueError, match="0 rows"):
        SelfSpeculativePolicy(rows=0)
