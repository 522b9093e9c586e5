"""FlashDLM: a causal model lets through what it finds likely, and what is clean stays cached."""

from __future__ import annotations

from typing import Final

from weft.core.errors import SpecError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.approximate import FreeCache
from weft.decoding.diffusion.guidance.supervisor import (
    AcceptanceRule,
    CausalSupervisor,
    DynamicAcceptance,
    ExactAcceptance,
    RelativeAcceptance,
    supervisor_of,
)
from weft.decoding.diffusion.policies.confidence import ThresholdPolicy
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.preset import DiffusionPreset, Options, number, whole, word
from weft.decoding.diffusion.presets.usual import MOST_SLOTS, exact_cache
from weft.decoding.diffusion.schedules.fixed_blocks import FixedBlocks
from weft.decoding.diffusion.stops.terminators import FirstTerminator

_BLOCK: Final = 32
_RULES: Final = ("relative", "exact", "dynamic")


def _flashdlm(traits: ModelTraits, options: Options) -> DecoderConfig:
    """Everything is proposed at once; the supervisor decides how much of it is written."""
    folder = options.get("supervisor")
    if not isinstance(folder, str) or not folder:
        raise SpecError(
            "flashdlm needs a supervisor", hint="supervisor=FOLDER of a causal model, same tokens"
        )
    supervisor = CausalSupervisor(supervisor_of(folder, traits.device), _rule(options))
    supervisor.check(traits)
    full = traits.attention == "full"
    return DecoderConfig(
        ThresholdPolicy(0.0),
        FixedBlocks(whole(options, "block", _BLOCK if full else 0, 0, MOST_SLOTS)),
        FreeCache(blockwise=False) if full else exact_cache(traits),
        FirstTerminator(),
        verifiers=(supervisor,),
    )


def _rule(options: Options) -> AcceptanceRule:
    match word(options, "rule", "relative", _RULES):
        case "exact":
            return ExactAcceptance()
        case "dynamic":
            return DynamicAcceptance(share=number(options, "share", 0.6, 0.0, 1.0))
        case _:
            top = whole(options, "top", 2, 1, MOST_SLOTS)
            return RelativeAcceptance(top, number(options, "share", 0.5, 0.0, 1.0))


PRESETS: Final = (
    DiffusionPreset(
        "flashdlm",
        "all slots are drafted, and a causal model lets the longest likely prefix pass",
        _flashdlm,
        needs="a causal model with the same tokenizer: supervisor=FOLDER",
        options=("supervisor", "rule", "top", "share", "block"),
        published="Dream-7B with Qwen2.5-1.5B 12.14x on average, up to 34x with long contexts "
        "(FlashDLM, arXiv 2505.21467)",
    ),
)
