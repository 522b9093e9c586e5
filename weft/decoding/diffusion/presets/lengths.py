"""Presets that find out how long a block, or the answer, should be."""

from __future__ import annotations

from typing import Final

from weft.core.errors import SpecError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.policies.confidence import ThresholdPolicy
from weft.decoding.diffusion.ports import BlockSchedule, DecoderConfig
from weft.decoding.diffusion.preset import DiffusionPreset, Options, number, whole
from weft.decoding.diffusion.presets.usual import MOST_SLOTS, block_size, exact_cache
from weft.decoding.diffusion.schedules.moving import AdaBlock, Daedal, SlowFast
from weft.decoding.diffusion.stops.terminators import FirstTerminator

_BLOCK: Final = 32


def _scheduled(traits: ModelTraits, options: Options, schedule: BlockSchedule) -> DecoderConfig:
    policy = ThresholdPolicy(number(options, "threshold", 0.9, 0.0, 1.0))
    return DecoderConfig(policy, schedule, exact_cache(traits), FirstTerminator())


def _adablock(traits: ModelTraits, options: Options) -> DecoderConfig:
    schedule = AdaBlock(
        _delimiters(traits, options),
        block_size(traits, options, _BLOCK),
        number(options, "sure", 0.3, 0.0, 1.0),
    )
    return _scheduled(traits, options, schedule)


def _delimiters(traits: ModelTraits, options: Options) -> frozenset[int]:
    """Ids with commas between them; without the option, terminators only."""
    told = options.get("delimiters", ",".join(str(end) for end in sorted(traits.end_ids)))
    try:
        ids = frozenset(int(part) for part in str(told).split(",") if part.strip())
    except ValueError as wrong:
        raise SpecError(
            f"delimiters are token ids, not {told!r}", hint="such as delimiters=13,30"
        ) from wrong
    if any(not 0 <= token < traits.vocabulary for token in ids):
        raise SpecError(f"delimiters {told} are not all ids from 0 to {traits.vocabulary - 1}")
    return ids


def _daedal(traits: ModelTraits, options: Options) -> DecoderConfig:
    schedule = Daedal(
        whole(options, "start", 64, 1, MOST_SLOTS),
        block_size(traits, options, _BLOCK),
        whole(options, "more", 8, 2, MOST_SLOTS),
        whole(options, "tail", 32, 1, MOST_SLOTS),
    )
    return _scheduled(traits, options, schedule)


def _slowfast(traits: ModelTraits, options: Options) -> DecoderConfig:
    schedule = SlowFast(
        whole(options, "span", 128, 1, MOST_SLOTS), number(options, "fair", 0.3, 0.0, 1.0)
    )
    return _scheduled(traits, options, schedule)


PRESETS: Final = (
    DiffusionPreset(
        "adablock",
        "a threshold, in blocks that end where a sentence is expected to",
        _adablock,
        options=("threshold", "delimiters", "sure", "block"),
        lists=("delimiters",),
        published="up to +5.3 points at equal speed (AdaBlock, arXiv 2509.26432)",
    ),
    DiffusionPreset(
        "daedal",
        "a threshold, in an answer that grows until its end is in sight",
        _daedal,
        options=("threshold", "start", "more", "tail", "block"),
        published="the quality of the best fixed length without knowing it (DAEDAL, "
        "arXiv 2508.00819)",
    ),
    DiffusionPreset(
        "slowfast",
        "explore how far the model sees, then write that far",
        _slowfast,
        options=("threshold", "span", "fair"),
        published="15.6x, with dLLM-Cache 34.2x on GPQA (SlowFast, arXiv 2506.10848)",
    ),
)
