"""Diffusion decoders that are a policy, or a cache, with published settings: a preset for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from weft.core.errors import SpecError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.approximate import (
    DelayedCache,
    FreeCache,
    IntervalCache,
    PrefixCache,
    VicinityCache,
)
from weft.decoding.diffusion.caches.exact import exact_cache
from weft.decoding.diffusion.policies.adaptive import AdaptivePolicy
from weft.decoding.diffusion.policies.confidence import (
    By,
    EntropyBoundPolicy,
    EntropyThresholdPolicy,
    FactorPolicy,
    ThresholdPolicy,
)
from weft.decoding.diffusion.policies.editing import TokenEditPolicy
from weft.decoding.diffusion.policies.fixed_pace import (
    AncestralPolicy,
    DilatedPolicy,
    EveryStep,
    FadingPace,
    FixedPacePolicy,
)
from weft.decoding.diffusion.policies.history import CreditPolicy, KlassPolicy, SmoothingPolicy
from weft.decoding.diffusion.policies.ranking import Score
from weft.decoding.diffusion.policies.remasking import (
    RemdmPolicy,
    RunningConfidencePolicy,
    WinoPolicy,
)
from weft.decoding.diffusion.policies.self_speculative import SelfSpeculativePolicy
from weft.decoding.diffusion.ports import BlockSchedule, CachePolicy, CommitPolicy, DecoderConfig
from weft.decoding.diffusion.preset import (
    DecoderOption,
    DiffusionPreset,
    NumberOption,
    Options,
    WholeOption,
    WordOption,
)
from weft.decoding.diffusion.schedules import FixedBlocks
from weft.decoding.diffusion.stops import FirstTerminator

BLOCK: Final = "block"
THRESHOLD: Final = NumberOption("threshold", 0.9)
_FACTOR: Final = NumberOption("factor", 1.0, 0.01, 100.0)
_LITTLE_ENTROPY: Final = NumberOption("nats", 0.5, high=100.0)
LOST_ENTROPY: Final = NumberOption("nats", 0.1, high=100.0)
STEPS: Final = WholeOption("steps", 0)
"""0: as many as slots, which Dream's authors suggest."""
_REFRESH: Final = WholeOption("refresh", 0)
"""0: never."""
_COUNT: Final = WholeOption("count", 1, low=1)
_SPREAD: Final = NumberOption("spread", 0.0, high=100.0)
_BY: Final[WordOption[By]] = WordOption("by", ("drawn", "confidence"))


class BlockOption(WholeOption):
    """Slots of a block; 0: all of the answer."""


def block(size: int = 0) -> BlockOption:
    """The option of that name, with its default for models without blocks."""
    return BlockOption(BLOCK, size)


def block_size(traits: ModelTraits, options: Options, block: int = 0) -> int:
    """The option `block`: slots of a block, 0: all of the answer. A model with blocks takes its own
    size or a divisor. Raises: `SpecError` for another.
    """
    size = WholeOption(BLOCK, traits.block or block)(options)
    if traits.block and (size == 0 or traits.block % size):
        raise SpecError(
            f"blocks of {size} slots do not fit a model with blocks of {traits.block}",
            hint="a slot never sees later blocks: leave `block` out, or take a divisor",
        )
    return size


def configured(
    traits: ModelTraits,
    commit: CommitPolicy,
    schedule: BlockSchedule,
    cache: CachePolicy | None = None,
) -> DecoderConfig:
    """A configuration with an exact cache by default, and an end at the first terminator."""
    return DecoderConfig(commit, schedule, cache or exact_cache(traits), FirstTerminator())


def _row(
    name: str,
    summary: str,
    policy: Callable[..., CommitPolicy],
    *options: DecoderOption,
    fresh: bool = False,
    plain: bool = False,
    published: str = "",
) -> DiffusionPreset:
    """A preset that is a policy with `options` by name, in blocks from left to right."""

    (blocks,) = (one for one in options if isinstance(one, BlockOption))

    def make(traits: ModelTraits, values: Options) -> DecoderConfig:
        commit = policy(**{one.name: one(values) for one in options if one is not blocks})
        config = configured(traits, commit, FixedBlocks(block_size(traits, values, blocks.default)))
        return replace(config, fresh=fresh)

    names = tuple(option.name for option in options)
    return DiffusionPreset(name, summary, make, plain, options=names, published=published)


def _cached(
    name: str,
    summary: str,
    cache: Callable[..., CachePolicy],
    *options: DecoderOption,
    published: str,
) -> DiffusionPreset:
    """A preset that differs from `threshold`, or `factor` with that option, in its cache only."""

    def make(traits: ModelTraits, values: Options) -> DecoderConfig:
        policy: CommitPolicy = ThresholdPolicy(THRESHOLD(values))
        if _FACTOR.name in values:
            policy = FactorPolicy(_FACTOR(values))
        made = cache(**{option.name: option(values) for option in options})
        return configured(traits, policy, FixedBlocks(block_size(traits, values, 32)), made)

    names = (THRESHOLD.name, _FACTOR.name, BLOCK, *(option.name for option in options))
    return DiffusionPreset(name, summary, make, options=names, published=published)


# --- policies and caches of presets


def _dream(score: Score) -> Callable[..., CommitPolicy]:
    """Ranks before temperature and cuts, unlike Dream, because a cut looks like certainty."""
    return lambda steps, spread: FixedPacePolicy(FadingPace(steps), score, spread)


def _dimple(steps: int, threshold: float) -> CommitPolicy:
    """Literals of the canvas serve as structure priors."""
    return ThresholdPolicy(threshold, "drawn", FadingPace(steps, least=1))


def _freecache(freeze: str, ahead: int, behind: int) -> CachePolicy:
    return FreeCache(freeze == "block", behind, ahead or None)


@dataclass(frozen=True, slots=True)
class _EditOption:
    """`off` is None; 0 edits every token that is not the likeliest."""

    default: float
    name: str = "edit"

    def __call__(self, options: Options) -> float | None:
        number = NumberOption(self.name, self.default)
        return None if options.get(self.name) == "off" else number(options)


def _token_edit(threshold: float, edit: float | None, reviews: int) -> CommitPolicy:
    return TokenEditPolicy(threshold, edit, reviews)


PRESETS: Final = (
    _row(
        "sequential",
        "one slot a pass, left to right",
        lambda: FixedPacePolicy(EveryStep(1), "leftmost"),
        block(),
        plain=True,
    ),
    _row(
        "random",
        "as many slots a pass as asked for, in random order",
        lambda count: FixedPacePolicy(EveryStep(count), "random"),
        block(),
        WholeOption("count", 2, low=1),
    ),
    _row(
        "dilated",
        "slots that stand apart first, with half the gap in each pass",
        DilatedPolicy,
        block(32),
        WholeOption("base", 2, low=2),
    ),
    _row(
        "dream_origin",
        "each slot is written by chance as time passes",
        AncestralPolicy,
        block(),
        STEPS,
        fresh=True,
    ),
    _row(
        "dream_maskgit",
        "Dream's pace, the slots whose tokens are likeliest first",
        _dream("drawn"),
        block(),
        *(STEPS, _SPREAD),
        fresh=True,
    ),
    _row(
        "dream_margin",
        "Dream's pace, the slots with the largest margin to the second token first",
        _dream("margin"),
        block(),
        *(STEPS, _SPREAD),
        fresh=True,
    ),
    _row(
        "dream_entropy",
        "Dream's pace, the slots with the least entropy first",
        _dream("entropy"),
        block(),
        *(STEPS, _SPREAD),
        fresh=True,
    ),
    _row(
        "dimple",
        "all slots above a confidence of 0.95, else those of Dream's pace",
        _dimple,
        block(),
        *(STEPS, NumberOption("threshold", 0.95)),
        fresh=True,
        published="about a third as many passes as tokens (Dimple, arXiv 2505.16990)",
    ),
    _row(
        "threshold",
        "all slots whose confidence reaches a threshold",
        ThresholdPolicy,
        block(32),
        *(THRESHOLD, _BY),
        published="Fast-dLLM without its cache: LLaDA-8B GSM8K 6.7 to 16.5 tokens/s at 0.9 on an "
        "A100 (arXiv 2505.22618)",
    ),
    _row(
        "factor",
        "as many of the surest slots as are sure together",
        FactorPolicy,
        block(32),
        *(_FACTOR, _BY),
        published="lossless at 1 where predictions are true and tokens greedy (Fast-dLLM, theorem)",
    ),
    _row(
        "entropy_threshold",
        "all slots with little entropy, for models trained to be certain",
        EntropyThresholdPolicy,
        block(32),
        _LITTLE_ENTROPY,
        published="with dParallel's students 8.5x on GSM8K (arXiv 2509.26488)",
    ),
    _row(
        "entropy_bound",
        "as many slots as a budget of lost information allows",
        EntropyBoundPolicy,
        block(32),
        LOST_ENTROPY,
        published="2x to 3x without loss (EB-Sampler, arXiv 2505.24857)",
    ),
    _row(
        "klass",
        "slots that are sure and whose predictions stand still",
        KlassPolicy,
        NumberOption("confidence", 0.6),
        NumberOption("divergence", 0.015, high=100.0),
        WholeOption("history", 2, 1, 64),
        block(64),
        published="2.78x on reasoning without training (KLASS, arXiv 2511.05664)",
    ),
    _row(
        "credit",
        "tokens that stay likeliest get credit, then a threshold",
        lambda threshold, **credit: CreditPolicy(ThresholdPolicy(threshold), **credit),
        THRESHOLD,
        NumberOption("weight", 0.65, high=100.0),
        NumberOption("decay", 0.8),
        block(32),
        published="LLaDA-8B-Instruct 5.48x with +.48 points over 8 benchmarks "
        "(CreditDecoding, arXiv 2510.06133)",
    ),
    _row(
        "smooth",
        "open slots are read as a little of what was predicted, and a threshold falls",
        SmoothingPolicy,
        *(THRESHOLD, NumberOption("weight", 0.15, high=0.3)),
        block(32),
        published="part of dInfer's fastest setting (arXiv 2510.08666)",
    ),
    _row(
        "wino",
        "many slots are drafted, and opened again where the others do not expect them",
        WinoPolicy,
        *(NumberOption("draft", 0.6), NumberOption("verify", 0.9)),
        block(128),
        published="LLaDA-8B-Instruct GSM8K 6x with +2.58 points (WINO, arXiv 2507.18578)",
    ),
    _row(
        "rcr",
        "so many more slots are kept at each pass, the surest so far",
        RunningConfidencePolicy,
        _COUNT,
        block(128),
    ),
    _row(
        "remdm",
        "written slots are opened again by chance, the doubtful ones more often",
        RemdmPolicy,
        *(_COUNT, NumberOption("rate", 0.2), WholeOption("budget", 32)),
        block(128),
    ),
    _row(
        "llada2",
        "blocks of 32, all slots whose confidence reaches a threshold",
        ThresholdPolicy,
        NumberOption("threshold", 0.95),
        block(32),
        published="LLaDA2.0-flash-CAP 535 tokens/s at 4.65 tokens a forward, score 76.85 "
        "(LLaDA2.0 report)",
    ),
    _row(
        "llada21_quality",
        "as llada2, and written tokens are overwritten when the model changes its mind",
        _token_edit,
        *(NumberOption("threshold", 0.7), _EditOption(0.5), WholeOption("reviews", 16)),
        block(32),
        published="LLaDA2.1-flash 3.64 tokens a forward, mean score 73.54 (LLaDA2.1 report)",
    ),
    _row(
        "llada21_speed",
        "written early, and overwritten whenever another token is likelier",
        _token_edit,
        *(NumberOption("threshold", 0.5), _EditOption(0.0), WholeOption("reviews", 16)),
        block(32),
        published="LLaDA2.1-flash 5.93 tokens a forward, mean score 72.34 (LLaDA2.1 report)",
    ),
    _cached(
        "fastdllm_prefix",
        "what stands before a block is read once in it",
        lambda refresh: PrefixCache(refresh or None),
        _REFRESH,
        published="LLaDA-8B-Instruct GSM8K, 8 shots, length 1024, A100: 18.6x, 77.3 to 75.7 "
        "points; 5 shots, length 256: 6.7 to 54.4 tokens/s (arXiv 2505.22618)",
    ),
    _cached(
        "fastdllm_dual",
        "all that stands around a block is read once in it",
        lambda refresh: PrefixCache(refresh or None, suffix=False),
        _REFRESH,
        published="LLaDA-8B-Instruct GSM8K, 8 shots, length 1024, A100: 27.6x, 77.3 to 76.0 points "
        "(arXiv 2505.22618)",
    ),
    _cached(
        "freecache",
        "the prompt and finished blocks are never read again",
        _freecache,
        WordOption("freeze", ("block", "token")),
        *(WholeOption("ahead", 0), WholeOption("behind", 0)),
        published="with AR-guided unmasking 12.14x on average, up to 34x at long contexts, "
        "Dream-7B-Instruct (FlashDLM, arXiv 2505.21467)",
    ),
    _cached(
        "delayed",
        "a token's keys are kept one step after it is written",
        lambda refresh: DelayedCache(refresh or None),
        WholeOption("refresh", 8),
        published="2x to 10x, LLaDA and Dream (dKV-Cache, arXiv 2505.15781)",
    ),
    _cached(
        "interval",
        "the prompt is read seldom, the answer oftener, in between what has moved most",
        IntervalCache,
        WholeOption("prompt", 100, low=1),
        WholeOption("answer", 7, low=1),
        NumberOption("share", 0.25),
        published="up to 9.1x, LLaDA and Dream (dLLM-Cache, arXiv 2506.06295)",
    ),
    _cached(
        "vicinity",
        "a block is read with its neighbours",
        lambda slots, warm_up, refresh: VicinityCache(slots, warm_up, refresh or None),
        *(WholeOption("slots", 16), WholeOption("warm_up", 4, low=1), _REFRESH),
        published="part of dInfer's 1100 tokens/s on HumanEval, LLaDA-MoE on 8 H800 "
        "(arXiv 2510.08666)",
    ),
    _row(
        "dparallel",
        "all slots with little entropy; for a model that weft train-diffusion dparallel made",
        EntropyThresholdPolicy,
        _LITTLE_ENTROPY,
        block(32),
        published="LLaDA-8B GSM8K 8.5x, MBPP 10.5x: 256 to 30 and 24 passes (dParallel, arXiv "
        "2509.26488)",
    ),
    _row(
        "self_speculative",
        "the text of one slot a pass, drafted from one pass and verified in a batched one",
        SelfSpeculativePolicy,
        *(WholeOption("rows", 16, 1, 256), WordOption("order", ("leftmost", "confidence"))),
        block(),
        published="3.46x, lossless (SSD, arXiv 2510.04147)",
    ),
    _row(
        "adaptive",
        "slots that hardly depend on each other together, the others one by one, then a look back",
        AdaptivePolicy,
        *(NumberOption("risk", 0.05), NumberOption("care", 0.05), NumberOption("doubt", 0.5)),
        WholeOption("rounds", 2, high=64),
        block(),
    ),
)
