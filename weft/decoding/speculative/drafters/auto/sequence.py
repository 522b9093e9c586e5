"""One sequence of `decode: auto`: its features, followed drafts and loss budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.decoding.speculative.draft import ROOT, DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    Drafter,
    DraftRequest,
    TargetObserver,
    TargetOutputs,
    proposal_of,
)
from weft.decoding.speculative.drafters.auto.history import (
    DEPTHS,
    WARMTHS,
    AcceptanceHistory,
    AcceptanceRates,
    warmth,
)

_LENGTHS: Final = (64, 256, 1024, 4096)
_OVERLAPS: Final = (0.1, 0.3)
_WARM: Final = 0.5
_NGRAM: Final = 3
_LONGEST_LABEL: Final = 100


@dataclass(frozen=True, slots=True)
class RequestFeatures:
    """`overlap`: see `overlap`. `label`: the node of the program; may be empty."""

    prompt_tokens: int
    overlap: float
    temperature: float
    label: str = ""

    @property
    def scopes(self) -> tuple[str, ...]:
        """The groups that the request belongs to, from all requests to the most similar ones."""
        size = sum(self.prompt_tokens >= edge for edge in _LENGTHS)
        repeats = sum(self.overlap >= edge for edge in _OVERLAPS)
        heat = (self.temperature > 0.0) + (self.temperature > _WARM)
        kind = ("", f"kind {size}{repeats}{heat}")
        return (*kind, f"node {self.label[:_LONGEST_LABEL]}") if self.label else kind


def overlap(tokens: Sequence[int]) -> float:
    """The share of a prompt's runs of three tokens that repeat an earlier one."""
    runs = list(zip(*(tokens[shift:] for shift in range(_NGRAM)), strict=False))
    return 1.0 - len(set(runs)) / len(runs) if runs else 0.0


START: Final = 0.5
SHARE: Final = 0.015
_MOST: Final = 4.0


class LossBudget:
    """A budget in plain steps of the sequence: `START`, and `SHARE` of each step, may be lost.

    Drafts are paid from `room`; accepted tokens add to it, up to a limit. By the given costs, a
    text of n steps takes at most (1 + `SHARE`) * n + `START` steps.
    """

    def __init__(self) -> None:
        self.room = START

    def step(self, saved: int) -> None:
        """Note a pass that wrote `saved` tokens besides the target's own."""
        self.room = min(self.room + SHARE + saved, _MOST)

    def spend(self, steps: float) -> None:
        """Pay for the longer pass of a draft."""
        self.room -= steps


class ShadowDraft:
    """Follows a drafter's drafts along a text to see how far they would have been accepted.

    Exact with `ExactMatch`, because then the text does not depend on drafts. It follows one draft
    at a time, as real steps would, and updates `chances` by warmth.
    """

    def __init__(self, chances: Sequence[AcceptanceRates]) -> None:
        assert len(chances) == WARMTHS
        self._by_warmth = tuple(chances)
        self._streak = 0
        self._tree = DraftTree()
        self._node = ROOT
        self._deepest = 0
        self._right = 0

    @property
    def following(self) -> bool:
        """Whether a draft is being followed."""
        return self._deepest > 0

    @property
    def chances(self) -> AcceptanceRates:
        """The rates of a draft made now."""
        return self._by_warmth[warmth(self._streak)]

    def follow(self, tree: DraftTree) -> None:
        """Follow a draft from the last token on, instead of the one before."""
        self._tree, self._node, self._right = tree, ROOT, 0
        self._deepest = int(np.max(tree.depths))

    def extend(self, token: int) -> None:
        """Append `token` to the text."""
        if not self.following:
            self._streak = 0
            return
        children = self._tree.children(self._node)
        match = next((child for child in children if self._tree.tokens[child] == token), None)
        if children:
            self._learn(accepted=match is not None)
        if match is not None:
            self._node = match
            self._right += 1
            self._streak += 1
            return
        if children:
            self._streak = 0
        self._deepest = 0

    def _learn(self, *, accepted: bool) -> None:
        """Count a test of the followed draft, and of its remainder at each token passed.

        A drafter would nearly always repeat the remainder there, so every position of a text tests
        a draft, with the warmth that it would have begun with.
        """
        before = self._streak - self._right
        for at in range(self._right + 1):
            self._by_warmth[warmth(before + at)].test(self._right - at, accepted=accepted)


class AutoDrafter:
    """Implements `Drafter` and `TargetObserver`: the state of one sequence for `AutoMethod`.

    `free` and `paid` drafters by name. Shadows follow the free ones all the time, the paid ones
    when they draft.
    """

    name = "auto"

    def __init__(
        self,
        free: Mapping[str, Drafter],
        paid: Mapping[str, Drafter],
        history: AcceptanceHistory,
        request: DraftRequest,
    ) -> None:
        self.drafters = {**free, **paid}
        self.shadows: dict[str, ShadowDraft] = {}
        self.tokens = 0
        self.ledger = LossBudget()
        self._free = dict(free)
        self._history = history
        self._request = request
        self._fresh: dict[str, DraftProposal] = {}
        """Proposals of free drafters after the last token."""
        self._watching = [
            each for each in self.drafters.values() if isinstance(each, TargetObserver)
        ]

    @property
    def taps(self) -> tuple[int, ...]:
        return tuple(sorted({layer for each in self._watching for layer in each.taps}))

    def see(self, outputs: TargetOutputs) -> None:
        for drafter in self._watching:
            drafter.see(outputs)

    def extend(self, tokens: Sequence[int]) -> None:
        self.tokens += len(tokens)
        if not self.shadows:
            self._begin(tokens)
            return
        self.ledger.step(len(tokens) - 1)
        for name, drafter in self.drafters.items():
            if name not in self._free:
                drafter.extend(tokens)
                self._follow(name, tokens)
        for name, drafter in self._free.items():
            self._fresh.pop(name, None)
            self._follow_free(name, drafter, tokens)

    def propose(self, most: int) -> DraftProposal | DraftTree:
        """Proposes nothing: `AutoMethod` chooses for all sequences of a step together."""
        del most
        return DraftProposal()

    def offered(self, name: str) -> DraftProposal:
        """The current proposal of a free drafter."""
        if name not in self._fresh:
            self._fresh[name] = proposal_of(self._free[name], DEPTHS)
        return self._fresh[name]

    def _begin(self, prompt: Sequence[int]) -> None:
        heat = self._request.sampling.temperature
        features = RequestFeatures(len(prompt), overlap(prompt), heat, self._request.label)
        for name, drafter in self.drafters.items():
            drafter.extend(prompt)
            self.shadows[name] = ShadowDraft(self._history.chances(features.scopes, name))
        for name in self._free:
            self.shadows[name].follow(self.offered(name).tree)

    def _follow(self, name: str, tokens: Sequence[int]) -> None:
        for token in tokens:
            self.shadows[name].extend(token)

    def _follow_free(self, name: str, drafter: Drafter, tokens: Sequence[int]) -> None:
        """Drafts at every step: the next draft begins where the last one ended."""
        shadow = self.shadows[name]
        for at, token in enumerate(tokens, 1):
            shadow.extend(token)
            drafter.extend((token,))
            if not shadow.following:
                draft = proposal_of(drafter, DEPTHS)
                shadow.follow(draft.tree)
                if at == len(tokens):
                    self._fresh[name] = draft
