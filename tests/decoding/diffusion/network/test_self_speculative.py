"""Self-speculation on networks: with an exact cache, the text of one slot a pass."""

from __future__ import annotations

import pytest

from tests.decoding.diffusion.network.small import BLOCKS, FULL, MASK, PROMPT, SHIFTED, network
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.cache import CachePolicy
from weft.decoding.diffusion.caches.block_causal import BlockCausal
from weft.decoding.diffusion.caches.whole import Whole
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import Denoising
from weft.decoding.diffusion.loop import denoised
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.policies.fixed import Fixed
from weft.decoding.diffusion.policies.pace import Every
from weft.decoding.diffusion.policies.self_speculative import SelfSpeculative
from weft.decoding.diffusion.policy import CommitPolicy
from weft.decoding.diffusion.schedules.fixed import Fixed as FixedBlocks
from weft.decoding.diffusion.stops.contiguous import Contiguous
from weft.decoding.speculative.chance import Keyed
from weft.decoding.speculative.law import Shaping

CASES: dict[str, tuple[Traits, CachePolicy]] = {
    "full": (FULL, Whole()),
    "shifted": (SHIFTED, Whole()),
    "blocks": (BLOCKS, Whole()),
    "blocks cached": (BLOCKS, BlockCausal()),
    "blocks cached, joined": (BLOCKS, BlockCausal(joined=True)),
}


@pytest.mark.parametrize("heat", [0.0, 1.0])
@pytest.mark.parametrize("case", CASES)
def test_the_text_is_that_of_one_slot_a_pass(case: str, heat: float) -> None:
    traits, cache = CASES[case]
    adapter = NetworkAdapter(network(), traits)

    def rows(policy: CommitPolicy) -> list[Denoising]:
        plugs = Plugs(policy, FixedBlocks(4), cache, Contiguous())
        made = [
            Denoising(Canvas(PROMPT, 11, MASK, row=n), plugs, traits, Keyed(n), Shaping(heat))
            for n in range(3)
        ]
        denoised(made, adapter)
        for row in range(3):
            adapter.forget(row)
        return made

    for plain, drafted in zip(
        rows(Fixed(Every(1), "leftmost")), rows(SelfSpeculative()), strict=True
    ):
        assert drafted.kept.tolist() == plain.kept.tolist()
        assert drafted.counters.forwards <= plain.counters.forwards
