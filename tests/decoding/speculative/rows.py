"""Methods on networks, one row or several, and the plain text to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.draft import DraftProposal
from weft.decoding.speculative.drafter import SpeculativeMethod
from weft.decoding.speculative.loop import DecodeLimits, DecodeLoop, decode_alone
from weft.decoding.speculative.speculation import SpeculativeSequence
from weft.decoding.speculative.target import NetworkTarget

SHAPINGS = (SamplingParams(0.0), SamplingParams(0.8, top_p=0.9))


def plain(
    network: Network,
    prompt: Sequence[int],
    shaping: SamplingParams,
    seed: int,
    limits: DecodeLimits,
) -> list[int]:
    """Token by token, without any of the speculative machinery but its chance."""
    return list(_written(network, tuple(prompt), shaping, seed, limits))


@cache
def _written(
    network: Network,
    prompt: tuple[int, ...],
    shaping: SamplingParams,
    seed: int,
    limits: DecodeLimits,
) -> tuple[int, ...]:
    network.reset()
    chance, tokens, read = CounterRng(seed), list(prompt), 0
    while len(tokens) - len(prompt) < limits.max_tokens:
        span = Span(0, range(read, len(tokens)), tokens[read:], 1)
        law = shaping.distribution(network.forward([span])[0].logits[-1])
        read = len(tokens)
        tokens.append(chance.token(law, read - len(prompt)))
        if tokens[-1] in limits.end_ids:
            break
    return tuple(tokens[len(prompt) :])


def alone(
    network: Network,
    prompt: Sequence[int],
    method: SpeculativeMethod,
    shaping: SamplingParams,
    seed: int,
    limits: DecodeLimits,
) -> tuple[list[int], DecodeLoop]:
    network.reset()
    decoding = decode_alone(network, prompt, method, shaping, CounterRng(seed), limits)
    return [token for step in decoding for token in step], decoding


def together(
    network: Network,
    prompts: Sequence[Sequence[int]],
    method: SpeculativeMethod,
    shaping: SamplingParams,
    limits: DecodeLimits,
) -> list[list[int]]:
    """All prompts at once, seeded by their number; the method is asked for all rows in one go."""
    network.reset()
    rows = [
        _Row(network, slot, prompt, method, shaping, limits) for slot, prompt in enumerate(prompts)
    ]
    while open_rows := [row for row in rows if not row.done]:
        asks = [row.speculation.ask() for row in open_rows]
        assert all(ask is not None for ask in asks), "a drafter was left behind"
        proposed = method.propose([ask for ask in asks if ask is not None])
        for row, ask, draft in zip(open_rows, asks, proposed, strict=True):
            assert isinstance(draft, DraftProposal), draft
            row.step(row.speculation.take(draft, ask, row.room))
    return [row.tokens for row in rows]


class _Row:
    def __init__(
        self,
        network: Network,
        slot: int,
        prompt: Sequence[int],
        method: SpeculativeMethod,
        shaping: SamplingParams,
        limits: DecodeLimits,
    ) -> None:
        self.speculation = SpeculativeSequence(method, network.vocabulary_size)
        self.tokens: list[int] = []
        self.done = False
        self._target = NetworkTarget(network, shaping, slot)
        self._limits = limits
        self._chance = CounterRng(slot)
        for seen in self._target.begin(prompt, self.speculation.taps):
            self.speculation.see(seen)
        self.speculation.extend(prompt)

    @property
    def room(self) -> int:
        return self._limits.max_tokens - len(self.tokens)

    def step(self, draft: DraftProposal) -> None:
        law_at = self._target.verify(draft, self.speculation.taps)
        walk = self.speculation.walk(draft, law_at, self._chance, len(self.tokens))
        tokens = walk.tokens(draft.tree)
        ends = [at for at, token in enumerate(tokens, 1) if token in self._limits.end_ids]
        tokens = tokens[: ends[0]] if ends else tokens
        self.tokens += tokens
        self.done = bool(ends) or not self.room
        if not self.done:
            self.speculation.see(self._target.commit(walk))
        self.speculation.settle(draft, walk, tokens)
