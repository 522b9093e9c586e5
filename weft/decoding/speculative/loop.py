"""Speculative decoding of one sequence: propose, verify, walk, commit. Plain without drafts.

Stop strings are left to the reader of the tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.decoding.sampling import SamplingParams, TokenRng
from weft.decoding.speculative.draft import DraftProposal
from weft.decoding.speculative.drafter import DraftRequest, SpeculativeMethod, propose_all
from weft.decoding.speculative.speculation import NO_DRAFT, SpeculativeCounters, SpeculativeSequence
from weft.decoding.speculative.target import NetworkTarget, TargetModel

if TYPE_CHECKING:
    from weft.decoding.network.network import Network


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """A text ends with one of `end_ids`, at the latest after `max_tokens`."""

    max_tokens: int
    end_ids: frozenset[int] = frozenset()


class DecodeLoop:
    """The decoding of one sequence, whose prompt `target` and `speculation` have read.

    `position` is that of the first token, for `rng`. Iterate over the tokens of each step;
    iterating again continues.
    """

    def __init__(
        self,
        target: TargetModel,
        speculation: SpeculativeSequence,
        rng: TokenRng,
        limits: DecodeLimits,
        position: int = 0,
    ) -> None:
        self.done = limits.max_tokens < 1
        self.speculation = speculation
        self._target = target
        self._rng = rng
        self._limits = limits
        self._position = position

    @property
    def counters(self) -> SpeculativeCounters:
        """Counts so far."""
        return self.speculation.counters

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        while not self.done:
            yield self.step()

    def step(self) -> tuple[int, ...]:
        """One pass of the target: at least one token, up to the end of the text."""
        draft = self._propose()
        distribution_at = self._target.verify(draft, self.speculation.taps)
        here = self._position + self.counters.tokens
        walk = self.speculation.walk(draft, distribution_at, self._rng, here)
        tokens = self._until_the_end(walk.tokens(draft.tree))
        self.done |= self.counters.tokens + len(tokens) >= self._limits.max_tokens
        if not self.done:
            self.speculation.see(self._target.commit(walk))
        self.speculation.settle(draft, walk, tokens)
        if self.done:
            self.speculation.end()
        return tokens

    def _propose(self) -> DraftProposal:
        ask = self.speculation.ask()
        if ask is None:
            return NO_DRAFT
        [answer] = propose_all(self.speculation.method, [ask])
        room = self._limits.max_tokens - self.counters.tokens
        return self.speculation.take(answer, ask, room)

    def _until_the_end(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        for count, token in enumerate(tokens, 1):
            if token in self._limits.end_ids:
                self.done = True
                return tokens[:count]
        return tokens


def decode_alone(
    network: Network,
    prompt: Sequence[int],
    method: SpeculativeMethod,
    sampling: SamplingParams,
    rng: TokenRng,
    limits: DecodeLimits,
    slot: int = 0,
) -> DecodeLoop:
    """A loop to iterate over: the tokens of each step. Reads the prompt at once.

    Raises: `ValueError` for an empty prompt.
    """
    speculation = SpeculativeSequence(method, network.vocabulary_size, DraftRequest(sampling))
    target = NetworkTarget(network, sampling, slot)
    for outputs in target.begin(prompt, speculation.taps):
        speculation.see(outputs)
    speculation.extend(prompt)
    return DecodeLoop(target, speculation, rng, limits)
