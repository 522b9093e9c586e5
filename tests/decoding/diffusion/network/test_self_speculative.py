"""Self-speculation on networks: with an exact cache, the text of one slot a pass."""

from __future__ import annotations

import pytest

from tests.decoding.diffusion.network.small import BLOCKS, FULL, MASK, PROMPT, SHIFTED, network
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.exact import BlockCausalCache, NoCache
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import DenoisingRow, denoise_all
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.policies.fixed_pace import EveryStep, FixedPacePolicy
from weft.decoding.diffusion.policies.self_speculative import SelfSpeculativePolicy
from weft.decoding.diffusion.ports import CachePolicy, CommitPolicy, DecoderConfig
from weft.decoding.diffusion.schedules import FixedBlocks
from weft.decoding.diffusion.stops import FirstTerminator
from weft.decoding.sampling import CounterRng, SamplingParams

CASES: dict[str, tuple[ModelTraits, CachePolicy]] = {
    "full": (FULL, NoCache()),
    "shifted": (SHIFTED, NoCache()),
    "blocks": (BLOCKS, NoCache()),
    "blocks cached": (BLOCKS, BlockCausalCache()),
    "blocks cached, joined": (BLOCKS, BlockCausalCache(joined=True)),
}


@pytest.mark.parametrize("heat", [0.0, 1.0])
@pytest.mark.parametrize("case", CASES)
def test_the_text_is_that_of_one_slot_a_pass(case: str, heat: float) -> None:
    traits, cache = CASES[case]
    adapter = NetworkAdapter(network(), traits)

    def rows(policy: CommitPolicy) -> list[DenoisingRow]:
        plugs = DecoderConfig(policy, FixedBlocks(4), cache, FirstTerminator())
        made = [
            DenoisingRow(
                Canvas(PROMPT, 11, MASK, row=n), plugs, traits, CounterRng(n), SamplingParams(heat)
            )
            for n in range(3)
        ]
        denoise_all(made, adapter)
        for row in range(3):
            adapter.forget(row)
        return made

    for plain, drafted in zip(
        rows(FixedPacePolicy(EveryStep(1), "leftmost")), rows(SelfSpeculativePolicy()), strict=True
    ):
        assert drafted.kept.tolist() == plain.kept.tolist()
        assert drafted.counters.forwards <= plain.counters.forwards
