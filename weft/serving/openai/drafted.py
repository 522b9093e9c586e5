"""What a server counted of an answer's drafts, in weft's words; does no I/O."""

from __future__ import annotations

from weft.core.values import Speculated
from weft.serving.openai.chunk import Drafting

_DEEPEST = 64


def speculated(wire: Drafting | None, method: str, tokens: int) -> Speculated | None:
    """How `method` drafted an answer of so many tokens; None where nothing was drafted or told.

    A pass without a draft is not counted by the server: it wrote one token. The first token came
    with the prompt. Drafts may be kept beyond the end of an answer, which is then cut.
    """
    if wire is None or not wire.num_spec_steps:
        return None
    accepted = min(wire.num_accepted_draft_tokens, wire.num_draft_tokens)
    forwards = max(wire.num_spec_steps, tokens - 1 - accepted)
    steps = list(zip(wire.per_step_drafted or (), wire.per_step_accepted or (), strict=False))
    deepest = min(max((drafted for drafted, _ in steps), default=0), _DEEPEST)
    return Speculated(
        method,
        wire.num_draft_tokens,
        accepted,
        forwards,
        tuple(sum(kept >= d and drafted > d for drafted, kept in steps) for d in range(deepest)),
        tuple(sum(kept > d for _, kept in steps) for d in range(deepest)),
    )
