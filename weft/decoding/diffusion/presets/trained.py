"""Presets that need something trained: a filter for the model, or a model that learnt certainty."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from weft.core.errors import SpecError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.policies import learn2pd
from weft.decoding.diffusion.policies.confidence import EntropyThresholdPolicy
from weft.decoding.diffusion.policies.learn2pd import Learn2pdPolicy
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.preset import DiffusionPreset, Options, number
from weft.decoding.diffusion.presets.usual import block_size, exact_cache, usual
from weft.decoding.diffusion.schedules.fixed_blocks import FixedBlocks
from weft.decoding.diffusion.stops.terminators import EndOfTextStop

_MOST_NATS: Final = 100.0
_BLOCK: Final = 32


def _learn2pd(traits: ModelTraits, options: Options) -> DecoderConfig:
    """Blocks are those of the filter, and what lies behind a sure terminator is not written."""
    folder = options.get("filter", "")
    if not isinstance(folder, str):
        raise SpecError(f"filter must be a folder, not {folder!r}")
    judge = learn2pd.find_filter(Path(folder).expanduser() if folder else None, traits.digest)
    size = block_size(traits, options, judge.slots)
    if size > judge.slots or not size:
        raise SpecError(
            f"the filter judges blocks of up to {judge.slots} slots, not of {size or 'all'}",
            hint="leave `block` out",
        )
    policy = Learn2pdPolicy(judge, number(options, "threshold", 0.9, 0.0, 1.0))
    stop = EndOfTextStop(number(options, "end", 0.9, 0.01, 1.0))
    return DecoderConfig(policy, FixedBlocks(size), exact_cache(traits), stop)


def _dparallel(traits: ModelTraits, options: Options) -> DecoderConfig:
    policy = EntropyThresholdPolicy(number(options, "nats", 0.5, 0.0, _MOST_NATS))
    return usual(policy, traits, options, block=_BLOCK)


PRESETS: Final = (
    DiffusionPreset(
        "learn2pd",
        "slots that a trained filter takes for final, and nothing behind the end of the text",
        _learn2pd,
        needs="a filter for the model (weft train-diffusion learn2pd); one comes with list-full",
        options=("threshold", "filter", "block", "end"),
        published="LLaDA-8B GSM8K 22.58x with length 1024, 57.51x with a dual cache (Learn2PD, "
        "arXiv 2509.25188)",
    ),
    DiffusionPreset(
        "dparallel",
        "all slots with little entropy; for a model that weft train-diffusion dparallel made",
        _dparallel,
        options=("nats", "block"),
        published="LLaDA-8B GSM8K 8.5x, MBPP 10.5x: 256 to 30 and 24 passes (dParallel, arXiv "
        "2509.26488)",
    ),
)
