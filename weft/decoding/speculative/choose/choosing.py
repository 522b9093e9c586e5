"""One sequence for which drafters are chosen: all of them are told of it, whoever drafts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.decoding.speculative.asked import Asked
from weft.decoding.speculative.choose.features import Features, overlap
from weft.decoding.speculative.choose.history import DEPTHS, History
from weft.decoding.speculative.choose.ledger import Ledger
from weft.decoding.speculative.choose.shadow import Shadow
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Drafter, Seen, Watching
from weft.decoding.speculative.tree import DraftTree


class Choosing:
    """Implements `Drafter` and `Watching`; the method chooses, this remembers.

    `free` and `paid` drafters by name. The free ones are followed by their shadows all the time,
    the paid ones when they draft.
    """

    name = "auto"

    def __init__(
        self,
        free: Mapping[str, Drafter],
        paid: Mapping[str, Drafter],
        history: History,
        asked: Asked,
    ) -> None:
        self.drafters = {**free, **paid}
        self.shadows: dict[str, Shadow] = {}
        self.tokens = 0
        self.ledger = Ledger()
        self._free = dict(free)
        self._history = history
        self._asked = asked
        self._fresh: dict[str, Draft] = {}
        """What free drafters proposed after the last token."""
        self._watching = [each for each in self.drafters.values() if isinstance(each, Watching)]

    @property
    def taps(self) -> tuple[int, ...]:
        return tuple(sorted({layer for each in self._watching for layer in each.taps}))

    def see(self, seen: Seen) -> None:
        for drafter in self._watching:
            drafter.see(seen)

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

    def propose(self, most: int) -> Draft | DraftTree:
        """Chooses nothing: that takes all sequences of a step, so it is the method's."""
        del most
        return Draft()

    def offered(self, name: str) -> Draft:
        """What a free drafter proposes now."""
        if name not in self._fresh:
            self._fresh[name] = _draft(self._free[name])
        return self._fresh[name]

    def _begin(self, prompt: Sequence[int]) -> None:
        heat = self._asked.shaping.temperature
        features = Features(len(prompt), overlap(prompt), heat, self._asked.label)
        for name, drafter in self.drafters.items():
            drafter.extend(prompt)
            self.shadows[name] = Shadow(self._history.chances(features.scopes, name))
        for name in self._free:
            self.shadows[name].follow(self.offered(name).tree)

    def _follow(self, name: str, tokens: Sequence[int]) -> None:
        for token in tokens:
            self.shadows[name].extend(token)

    def _follow_free(self, name: str, drafter: Drafter, tokens: Sequence[int]) -> None:
        """As if it drafted at every step: a draft ends, the next one begins where it ended."""
        shadow = self.shadows[name]
        for at, token in enumerate(tokens, 1):
            shadow.extend(token)
            drafter.extend((token,))
            if not shadow.following:
                draft = _draft(drafter)
                shadow.follow(draft.tree)
                if at == len(tokens):
                    self._fresh[name] = draft


def _draft(drafter: Drafter) -> Draft:
    proposed = drafter.propose(DEPTHS)
    if isinstance(proposed, DraftTree):
        return Draft(proposed, source=drafter.name)
    return proposed
