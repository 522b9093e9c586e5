"""Presets with a plan: how many slots a step, whatever the model is sure of."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.filters import Guidance
from weft.decoding.diffusion.guidance.classifier_free import ClassifierFree
from weft.decoding.diffusion.guidance.forbidding import Forbidding
from weft.decoding.diffusion.option import number, whole, word
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.policies.dilated import Dilated
from weft.decoding.diffusion.policies.fixed import Fixed
from weft.decoding.diffusion.policies.pace import Every, Split
from weft.decoding.diffusion.preset import DiffusionPreset, Options
from weft.decoding.diffusion.presets.usual import MOST_SLOTS, usual

_MOST_GUIDANCE: Final = 100.0


def _sequential(traits: Traits, options: Options) -> Plugs:
    return usual(Fixed(Every(1), "leftmost"), traits, options)


def _llada(traits: Traits, options: Options) -> Plugs:
    """Tokens are drawn anew at each step, and ranked by the probability of what was drawn."""
    steps = whole(options, "steps", 0, 0, MOST_SLOTS)
    scale = number(options, "guidance", 0.0, 0.0, _MOST_GUIDANCE)
    ends = word(options, "ends", "any", ("any", "last", "never"))
    random = word(options, "order", "confidence", ("confidence", "random")) == "random"
    pace = Split(steps) if steps else Every(1)
    policy = Fixed(pace, "random" if random else "drawn", ends_last=ends == "last")
    guidance: list[Guidance] = [ClassifierFree(scale)] if scale else []
    if ends == "never":
        guidance.append(Forbidding(traits.end_ids))
    plugs = usual(policy, traits, options, block=32, fresh=True)
    return replace(plugs, guidance=tuple(guidance))


def _random(traits: Traits, options: Options) -> Plugs:
    count = whole(options, "count", 2, 1, MOST_SLOTS)
    return usual(Fixed(Every(count), "random"), traits, options)


def _dilated(traits: Traits, options: Options) -> Plugs:
    base = whole(options, "base", 2, 2, MOST_SLOTS)
    return usual(Dilated(base), traits, options, block=32)


PRESETS: Final = (
    DiffusionPreset(
        "sequential",
        "one slot a pass, left to right",
        _sequential,
        plain=True,
        options=("block",),
    ),
    DiffusionPreset(
        "llada",
        "equal steps in each block, the surest slots first",
        _llada,
        options=("block", "steps", "order", "ends", "guidance"),
        published="LLaDA-8B-Instruct: GSM8K 78.6 with length 256 and blocks of 8, 69.4 with length "
        "512 and one block (LLaDA repository, evaluation table)",
    ),
    DiffusionPreset(
        "random",
        "as many slots a pass as asked for, in random order",
        _random,
        options=("block", "count"),
    ),
    DiffusionPreset(
        "dilated",
        "slots that stand apart first, with half the gap in each pass",
        _dilated,
        options=("block", "base"),
    ),
)
