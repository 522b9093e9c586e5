"""Diffusion decoders beyond one policy or cache: each with its options and its preset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import gcd
from pathlib import Path
from typing import Final

from weft.core.errors import SpecError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.approximate import FreeCache
from weft.decoding.diffusion.caches.exact import BlockCausalCache, NoCache
from weft.decoding.diffusion.guidance.logits import ClassifierFreeGuidance, ForbiddenTokens
from weft.decoding.diffusion.policies import learn2pd
from weft.decoding.diffusion.policies.confidence import HierarchyPolicy, ThresholdPolicy
from weft.decoding.diffusion.policies.editing import IndelPolicy
from weft.decoding.diffusion.policies.fixed_pace import EvenSteps, EveryStep, FixedPacePolicy
from weft.decoding.diffusion.policies.uniform_state import UniformStatePolicy
from weft.decoding.diffusion.ports import CachePolicy, DecoderConfig, GuidancePolicy
from weft.decoding.diffusion.preset import (
    DecoderOption,
    DiffusionPreset,
    NumberOption,
    Options,
    TextOption,
    WholeOption,
    WordOption,
)
from weft.decoding.diffusion.presets.standard import (
    BLOCK,
    LOST_ENTROPY,
    STEPS,
    THRESHOLD,
    block,
    block_size,
    configured,
)
from weft.decoding.diffusion.schedules import AdaBlock, Daedal, FixedBlocks, SlowFast
from weft.decoding.diffusion.stops import EndOfTextStop


def _own(
    name: str,
    summary: str,
    make: Callable[[ModelTraits, Options], DecoderConfig],
    options: tuple[DecoderOption, ...],
    *,
    needs: str = "",
    published: str,
) -> DiffusionPreset:
    """A preset of `make` with its options."""
    names = tuple(option.name for option in options)
    several = (one.name for one in options if isinstance(one, TextOption) and one.several)
    return DiffusionPreset(
        name, summary, make, needs=needs, options=names, lists=tuple(several), published=published
    )


_GUIDANCE: Final = NumberOption("guidance", 0.0, high=100.0)
_ENDS: Final = WordOption("ends", ("any", "last", "never"))
_ORDER: Final = WordOption("order", ("confidence", "random"))


def _llada(traits: ModelTraits, options: Options) -> DecoderConfig:
    """Tokens are sampled anew in each step, and ranked by the probability of the sample."""
    steps, ends, scale = STEPS(options), _ENDS(options), _GUIDANCE(options)
    policy = FixedPacePolicy(
        EvenSteps(steps) if steps else EveryStep(1),
        "random" if _ORDER(options) == "random" else "drawn",
        ends_last=ends == "last",
    )
    guidance: list[GuidancePolicy] = [ClassifierFreeGuidance(scale)] if scale else []
    if ends == "never":
        guidance.append(ForbiddenTokens(traits.end_ids))
    config = configured(traits, policy, FixedBlocks(block_size(traits, options, 32)))
    return replace(config, guidance=tuple(guidance), fresh=True)


def _hierarchy(traits: ModelTraits, options: Options) -> DecoderConfig:
    high = THRESHOLD(options)
    low = NumberOption("low", min(0.4, high), high=high)(options)
    blocks = FixedBlocks(block_size(traits, options, 32))
    return configured(traits, HierarchyPolicy(high, low), blocks)


_CONTROLS: Final = tuple(
    WholeOption(name, -1, -1, 1 << 20) for name in ("keep", "delete", "insert")
)
_EDITS: Final = (
    NumberOption("threshold", 0.7),
    NumberOption("edit", 0.5),
    WholeOption("budget", 64),
)


def _llada22(traits: ModelTraits, options: Options) -> DecoderConfig:
    tokens = [replace(one, high=traits.vocabulary - 1)(options) for one in _CONTROLS]
    if min(tokens) < 0 or len(set(tokens)) < len(tokens):
        raise SpecError(
            "llada22 is for models with control tokens", hint="give keep=, delete= and insert= ids"
        )
    keep, delete, insert = tokens
    write, edit, budget = _EDITS
    policy = IndelPolicy(keep, delete, insert, write(options), edit(options), budget(options))
    return configured(traits, policy, FixedBlocks(block_size(traits, options, 32)))


_DELIMITERS: Final = TextOption("delimiters", several=True)
_SURE: Final = NumberOption("sure", 0.3)


def _adablock(traits: ModelTraits, options: Options) -> DecoderConfig:
    size = block_size(traits, options, 32)
    schedule = AdaBlock(_delimiters(traits, options), size, _SURE(options))
    return configured(traits, ThresholdPolicy(THRESHOLD(options)), schedule)


def _delimiters(traits: ModelTraits, options: Options) -> frozenset[int]:
    """Comma-separated ids; without the option, terminators only."""
    text = _DELIMITERS(options) if _DELIMITERS.name in options else None
    if text is None:
        return traits.end_ids
    try:
        ids = frozenset(int(part) for part in text.split(",") if part.strip())
    except ValueError as wrong:
        raise SpecError(
            f"delimiters are token ids, not {text!r}", hint="such as delimiters=13,30"
        ) from wrong
    if any(not 0 <= token < traits.vocabulary for token in ids):
        raise SpecError(f"delimiters {text} are not all ids from 0 to {traits.vocabulary - 1}")
    return ids


_START: Final = WholeOption("start", 64, low=1)
_MORE: Final = WholeOption("more", 8, low=2)
_TAIL: Final = WholeOption("tail", 32, low=1)
_SPAN: Final = WholeOption("span", 128, low=1)
_FAIR: Final = NumberOption("fair", 0.3)


def _daedal(traits: ModelTraits, options: Options) -> DecoderConfig:
    size = block_size(traits, options, 32)
    schedule = Daedal(_START(options), size, _MORE(options), _TAIL(options))
    return configured(traits, ThresholdPolicy(THRESHOLD(options)), schedule)


def _slowfast(traits: ModelTraits, options: Options) -> DecoderConfig:
    schedule = SlowFast(_SPAN(options), _FAIR(options))
    return configured(traits, ThresholdPolicy(THRESHOLD(options)), schedule)


_STORE: Final = WordOption("store", ("apart", "joined"))
_INSIDE: Final = WordOption("inside", ("whole", "dual"))


def _stored(traits: ModelTraits, cache: BlockCausalCache) -> CachePolicy:
    """`cache`; no cache for models with full attention, which are also served block by block."""
    return NoCache() if traits.attention == "full" else cache


def _sdar(traits: ModelTraits, options: Options) -> DecoderConfig:
    """`steps` is the schedule that a block falls back to where no slot is sure."""
    steps = STEPS(options)
    pace = EvenSteps(steps) if steps else EveryStep(1)
    cache = _stored(traits, BlockCausalCache(joined=_STORE(options) == "joined"))
    blocks = FixedBlocks(block_size(traits, options, 32))
    return configured(traits, ThresholdPolicy(THRESHOLD(options), pace=pace), blocks, cache)


def _fastdllm_v2(traits: ModelTraits, options: Options) -> DecoderConfig:
    """Sub-blocks of a block go from left to right; the pass that stores a block writes on."""
    size = block_size(traits, {BLOCK: gcd(8, traits.block), **options})
    within = _INSIDE(options) == "dual"
    cache = _stored(traits, BlockCausalCache(predicts=traits.shifted, within=within))
    return configured(traits, ThresholdPolicy(THRESHOLD(options)), FixedBlocks(size), cache)


_SUPERVISOR: Final = TextOption("supervisor")
_RULE: Final = WordOption("rule", ("relative", "exact", "dynamic"))
_TOP: Final = WholeOption("top", 2, low=1)
_SHARE: Final = NumberOption("share", 0.5)


def _flashdlm(traits: ModelTraits, options: Options) -> DecoderConfig:
    """All slots are proposed at once; the supervisor decides how many are written."""
    from weft.decoding.diffusion.guidance import supervisor  # imports torch

    folder = _SUPERVISOR(options)
    if not folder:
        raise SpecError(
            "flashdlm needs a supervisor", hint="supervisor=FOLDER of a causal model, same tokens"
        )
    network = supervisor.supervisor_of(folder, traits.device)
    rule: supervisor.AcceptanceRule
    match _RULE(options):
        case "exact":
            rule = supervisor.ExactAcceptance()
        case "dynamic":
            rule = supervisor.DynamicAcceptance(share=replace(_SHARE, default=0.6)(options))
        case _:
            rule = supervisor.RelativeAcceptance(_TOP(options), _SHARE(options))
    verifier = supervisor.CausalSupervisor(network, rule)
    verifier.check(traits)
    full = traits.attention == "full"
    blocks = FixedBlocks(WholeOption(BLOCK, 32 if full else 0)(options))
    cache = FreeCache(blockwise=False) if full else None
    return replace(configured(traits, ThresholdPolicy(0.0), blocks, cache), verifiers=(verifier,))


_FILTER: Final = TextOption("filter")
_END: Final = NumberOption("end", 0.9, 0.01)


def _learn2pd(traits: ModelTraits, options: Options) -> DecoderConfig:
    """Blocks are those of the filter; slots behind a sure terminator are not written."""
    folder = _FILTER(options)
    judge = learn2pd.find_filter(Path(folder).expanduser() if folder else None, traits.digest)
    size = block_size(traits, options, judge.slots)
    if size > judge.slots or not size:
        raise SpecError(
            f"the filter judges blocks of up to {judge.slots} slots, not of {size or 'all'}",
            hint="leave `block` out",
        )
    policy = learn2pd.Learn2pdPolicy(judge, THRESHOLD(options))
    config = configured(traits, policy, FixedBlocks(size))
    return replace(config, stop=EndOfTextStop(_END(options)))


_PASSES: Final = WholeOption("steps", 48, low=1)


def _uniform_state(traits: ModelTraits, options: Options) -> DecoderConfig:
    """Self-conditioning only for models without a mask: others were not trained on mixtures."""
    parts = 8 if traits.mask_id is None else None
    policy = UniformStatePolicy(_PASSES(options), bound=LOST_ENTROPY(options), parts=parts)
    return configured(traits, policy, FixedBlocks(block_size(traits, options, 256)))


PRESETS: Final = (
    _own(
        "llada",
        "equal steps in each block, the surest slots first",
        _llada,
        (block(), STEPS, _ORDER, _ENDS, _GUIDANCE),
        published="LLaDA-8B-Instruct: GSM8K 78.6 with length 256 and blocks of 8, 69.4 with length "
        "512 and one block (LLaDA repository, evaluation table)",
    ),
    _own(
        "hierarchy",
        "the best slot of each gap, and all that are sure",
        _hierarchy,
        (THRESHOLD, NumberOption("low", 0.4), block()),
        published="part of dInfer's 1100 tokens/s on HumanEval with LLaDA-MoE on 8 H800 "
        "(arXiv 2510.08666)",
    ),
    _own(
        "llada22",
        "tokens are overwritten, taken out and inserted, by the model's control tokens",
        _llada22,
        (*_EDITS, *_CONTROLS, block()),
        needs="a model with control tokens: keep=ID, delete=ID, insert=ID",
        published="SWE-bench Verified 35.8 to 44.4 by editing (LLaDA2.2 report)",
    ),
    _own(
        "adablock",
        "a threshold, in blocks that end where a sentence is expected to",
        _adablock,
        (THRESHOLD, _DELIMITERS, _SURE, block()),
        published="up to +5.3 points at equal speed (AdaBlock, arXiv 2509.26432)",
    ),
    _own(
        "daedal",
        "a threshold, in an answer that grows until its end is in sight",
        _daedal,
        (THRESHOLD, _START, _MORE, _TAIL, block()),
        published="the quality of the best fixed length without knowing it (DAEDAL, "
        "arXiv 2508.00819)",
    ),
    _own(
        "slowfast",
        "explore how far the model sees, then write that far",
        _slowfast,
        (THRESHOLD, _SPAN, _FAIR),
        published="15.6x, with dLLM-Cache 34.2x on GPQA (SlowFast, arXiv 2506.10848)",
    ),
    _own(
        "sdar",
        "block by block; what is sure in each pass, and a pass that stores each block",
        _sdar,
        (THRESHOLD, block(), STEPS, _STORE),
        published="SDAR: over 2x its static schedule; 4B in JetEngine 1800 tokens/s on an A800 at "
        "batch 128 (repository)",
    ),
    _own(
        "fastdllm_v2",
        "sub-blocks from left to right; the pass that stores a block writes the next token",
        _fastdllm_v2,
        (THRESHOLD, block(), _INSIDE),
        published="7B: up to 2.5x its autoregressive origin, 60.3 points on average "
        "(arXiv 2509.26328)",
    ),
    _own(
        "flashdlm",
        "all slots are drafted, and a causal model lets the longest likely prefix pass",
        _flashdlm,
        (_SUPERVISOR, _RULE, _TOP, _SHARE, block()),
        needs="a causal model with the same tokenizer: supervisor=FOLDER",
        published="Dream-7B with Qwen2.5-1.5B 12.14x on average, up to 34x with long contexts "
        "(FlashDLM, arXiv 2505.21467)",
    ),
    _own(
        "learn2pd",
        "slots that a trained filter takes for final, and nothing behind the end of the text",
        _learn2pd,
        (THRESHOLD, _FILTER, block(), _END),
        needs="a filter for the model (weft train-diffusion learn2pd); one comes with list-full",
        published="LLaDA-8B GSM8K 22.58x with length 1024, 57.51x with a dual cache (Learn2PD, "
        "arXiv 2509.25188)",
    ),
    _own(
        "uniform_state",
        "noise is replaced where little entropy is lost, until the text stands still",
        _uniform_state,
        (_PASSES, LOST_ENTROPY, block()),
        published="12 to 16 passes for 256 slots; 1008 tokens/s on an H100 in FP8 "
        "(DiffusionGemma documentation)",
    ),
)
