"""What drafters that look at tokens only would have taken, with what they may remember.

Plain answers are written once; then every such drafter is replayed against them, since lossless
decoding writes the same text (see `replay`). So variants cost no passes, and what a drafter
remembers of other prompts can be told from what it finds in the prompt itself:

    cold    every prompt for itself
    warm    the answers to all other prompts of the case are remembered, in a shuffled order;
            never that to the same prompt
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from evals.engine.rows import Row
from evals.planning.effort import Skipped
from evals.speculative.cases import CASES
from evals.speculative.cases.prompt import Prompt
from evals.speculative.looping import LOOPS, repeated
from evals.speculative.replay import replayed
from evals.speculative.single import Model, plainly
from weft.core.errors import ModelNotFound
from weft.decoding.speculative.drafter import Drafter
from weft.decoding.speculative.drafters.ngram.hybrid import HybridDrafter
from weft.decoding.speculative.drafters.ngram.lookup import LookupDrafter
from weft.decoding.speculative.drafters.ngram.suffix import (
    RecordingSuffixDrafter,
    SharedTexts,
    SuffixOptions,
)
from weft.serving.weights import locate

MODEL: Final = "smollm2-135m-instruct"
_SUFFIX: Final = SuffixOptions()
_FREE: Final = ("agent_quoting", "agent_edits", "summarization", "rag", "mt_bench", "translation")


@dataclass(frozen=True, slots=True)
class Variant:
    """A drafter over what others wrote, and the most tokens of its drafts."""

    begin: Callable[[SharedTexts | None], Drafter]
    most: int
    remembers: bool = False


def _suffix(options: SuffixOptions) -> Callable[[SharedTexts | None], Drafter]:
    return lambda shared: RecordingSuffixDrafter(options, shared)


VARIANTS: Final[dict[str, Variant]] = {
    "lookup:4": Variant(lambda _: LookupDrafter(), 4),
    "lookup:8": Variant(lambda _: LookupDrafter(), 8),
    "lookup:16": Variant(lambda _: LookupDrafter(), 16),
    "lookup:10,which=first": Variant(lambda _: LookupDrafter(which="first"), 10),
    "suffix:16": Variant(_suffix(_SUFFIX), 16, remembers=True),
    "suffix:16,factor=2": Variant(_suffix(SuffixOptions(factor=2.0)), 16, remembers=True),
    "suffix:16,tree": Variant(_suffix(SuffixOptions(tree=True)), 16, remembers=True),
    "hybrid:8": Variant(
        lambda shared: HybridDrafter(_SUFFIX, shared, LookupDrafter()), 8, remembers=True
    ),
}


@dataclass(frozen=True, slots=True)
class Written:
    """A prompt's tokens, and those of the plain answer to it."""

    prompt: Sequence[int]
    answer: Sequence[int]


def rows(quick: bool) -> list[dict[str, Any]]:
    """The figures of every variant in the cases without a grammar. Raises: `Skipped`."""
    try:
        model = Model(locate(MODEL))
    except ModelNotFound as error:
        raise Skipped(str(error)) from error
    found: list[Row] = []
    for case in _FREE[:1] if quick else _FREE:
        try:
            prompts = CASES[case](4 if quick else 8)
        except Skipped as reason:
            found.append(Row(case, "", f"skipped: {reason}", None, ""))
            continue
        texts = [written(model, prompt, 48 if quick else 64) for prompt in prompts]
        found += case_rows(case, texts)
    return [asdict(row) for row in found]


def written(model: Model, prompt: Prompt, tokens: int) -> Written:
    """The plain answer to a prompt, of at most so many tokens."""
    read = model.read(prompt, ())
    return Written(read.tokens, read.answer(plainly(), tokens).tokens)


def case_rows(case: str, texts: Sequence[Written]) -> list[Row]:
    """The figures of every variant over the texts of one case."""
    found: list[Row] = []
    for name, variant in VARIANTS.items():
        found += _figures(case, f"{name} (cold)", texts, variant, [None for _ in texts])
        if variant.remembers:
            found += _figures(case, f"{name} (warm)", texts, variant, list(_others(texts)))
    return found


def _figures(
    case: str,
    system: str,
    texts: Sequence[Written],
    variant: Variant,
    remembered: Sequence[SharedTexts | None],
) -> Iterator[Row]:
    forwards = tokens = steady_forwards = steady_tokens = drafted = 0
    for text, shared in zip(texts, remembered, strict=True):
        drafter = variant.begin(shared)
        drafter.extend(text.prompt)
        counters = replayed(drafter, text.answer, variant.most)
        forwards, tokens = forwards + counters.forwards, tokens + counters.tokens
        drafted += counters.drafted
        if repeated(text.answer) <= LOOPS:
            steady_forwards += counters.forwards
            steady_tokens += counters.tokens
    yield Row(case, system, "tokens_per_target_forward", tokens / forwards, "tokens")
    yield Row(case, system, "drafted_per_token", drafted / tokens, "tokens")
    if steady_forwards:
        value = steady_tokens / steady_forwards
        yield Row(case, system, "tokens_per_target_forward_no_loops", value, "tokens")


def _others(texts: Sequence[Written]) -> Iterator[SharedTexts]:
    """For each text: what all the others wrote."""
    for own in texts:
        others = [text for text in texts if text is not own]
        random.Random(len(texts)).shuffle(others)
        shared = SharedTexts(_SUFFIX.depth)
        for other in others:
            shared.remember([*other.prompt[-_SUFFIX.depth :], *other.answer])
        yield shared
