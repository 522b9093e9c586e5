"""What a method would have taken to write a text that is known: no model is asked.

Exact in passes and in what they read, where the rule is `ExactMatch`; time is what was measured of
passes, and what the clock says of drafts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from weft.core.ports.clock import Clock, SystemClock
from weft.decoding.speculative.draft import ROOT, DraftProposal, DraftTree
from weft.decoding.speculative.drafter import DraftRequest, SpeculativeMethod
from weft.decoding.speculative.pass_costs import PassCosts


class Moving(Clock, Protocol):
    """A clock that passes move; `FakeClock` is one."""

    def advance(self, seconds: float) -> None:
        """Move time forward."""


class Working(SystemClock):
    """Implements `Moving`: counts what this thread computes, which a busy machine adds nothing to,
    and the passes that it is told of.
    """

    def __init__(self) -> None:
        self._passes_s = 0.0

    def now(self) -> float:
        return time.thread_time() + self._passes_s

    def advance(self, seconds: float) -> None:
        self._passes_s += seconds


@dataclass(frozen=True, slots=True)
class Replay:
    """`tokens` were written in `forwards` passes, of which `drafting` read `nodes` drafted tokens.

    `seconds`: as the passes were measured, and drafting was timed.
    """

    tokens: int
    forwards: int
    drafting: int
    nodes: int
    seconds: float

    @property
    def tokens_per_s(self) -> float:
        """0 for a text of nothing."""
        return self.tokens / self.seconds if self.seconds else 0.0


def replayed(
    method: SpeculativeMethod,
    prompt: Sequence[int],
    text: Sequence[int],
    costs: PassCosts,
    clock: Moving,
    asked: DraftRequest | None = None,
) -> Replay:
    """Write `text` after `prompt` as the method would, alone, by the clock that it knows.

    Raises: what a drafter raises.
    """
    drafter = method.begin(asked or DraftRequest())
    drafter.extend(prompt)
    at = forwards = drafting = nodes = 0
    begun_s = clock.now()
    while at < len(text):
        room = len(text) - at - 1
        (draft,) = method.propose([(drafter, min(method.nodes, room))])
        if not isinstance(draft, DraftProposal):
            raise draft
        tree = draft.tree.clipped(room)
        accepted = _followed(tree, text[at:])
        written = text[at : at + accepted + 1]
        context = len(prompt) + at
        clock.advance(costs.second(context) * costs.curve(context)(1 + len(tree)))
        forwards, drafting, nodes = forwards + 1, drafting + bool(tree.tokens), nodes + len(tree)
        drafter.extend(written)
        at += len(written)
    method.end(drafter)
    return Replay(len(text), forwards, drafting, nodes, clock.now() - begun_s)


def _followed(tree: DraftTree, text: Sequence[int]) -> int:
    """How many tokens of `text` from its beginning a draft has on one way down."""
    node = ROOT
    for count, token in enumerate(text):
        below = (child for child in tree.children(node) if tree.tokens[child] == token)
        found = next(below, None)
        if found is None:
            return count
        node = found
    return len(text)
