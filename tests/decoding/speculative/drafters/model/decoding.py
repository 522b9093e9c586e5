"""Decoding the toy target with a method, one sequence or several in step, and without."""

from __future__ import annotations

from collections.abc import Sequence

from tests.decoding.speculative.toy import WORDS, ToyTarget
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.draft import DraftProposal
from weft.decoding.speculative.drafter import DraftRequest, SpeculativeMethod
from weft.decoding.speculative.loop import DecodeLimits, DecodeLoop
from weft.decoding.speculative.speculation import SpeculativeCounters, SpeculativeSequence

PROMPT = (1, 2, 3, 1, 2)
LIMITS = DecodeLimits(40, frozenset({4}))


def plain(
    shaping: SamplingParams,
    seed: int,
    limits: DecodeLimits = LIMITS,
    prompt: Sequence[int] = PROMPT,
) -> list[int]:
    """The target's own text."""
    target, chance, text = ToyTarget(prompt, shaping), CounterRng(seed), list[int]()
    while len(text) < limits.max_tokens and not (text and text[-1] in limits.end_ids):
        text.append(chance.token(target.law([*prompt, *text]), len(text)))
    return text


def decoded(
    method: SpeculativeMethod,
    shaping: SamplingParams,
    seed: int,
    limits: DecodeLimits = LIMITS,
    prompt: Sequence[int] = PROMPT,
) -> tuple[list[int], SpeculativeCounters]:
    """The text with the method's drafts. A drafter that failed fails the test."""
    decoding = started(method, shaping, seed, limits, prompt)
    text = [token for step in decoding for token in step]
    assert decoding.speculation.fallback is None, decoding.speculation.fallback
    return text, decoding.counters


def started(
    method: SpeculativeMethod,
    shaping: SamplingParams,
    seed: int,
    limits: DecodeLimits = LIMITS,
    prompt: Sequence[int] = PROMPT,
) -> DecodeLoop:
    speculation = SpeculativeSequence(method, WORDS, DraftRequest(shaping, seed))
    speculation.extend(prompt)
    return DecodeLoop(ToyTarget(prompt, shaping), speculation, CounterRng(seed), limits)


class Rows:
    """Sequences of one method, a step of all that are not done at a time, as a server does it."""

    def __init__(
        self, method: SpeculativeMethod, prompts: Sequence[Sequence[int]], shaping: SamplingParams
    ) -> None:
        self.texts: list[list[int]] = [[] for _ in prompts]
        self._method = method
        self._prompts = prompts
        self._targets = [ToyTarget(prompt, shaping) for prompt in prompts]
        self._drafters = [method.begin(DraftRequest(shaping, row)) for row in range(len(prompts))]
        self._chances = [CounterRng(row) for row in range(len(prompts))]
        for drafter, prompt in zip(self._drafters, prompts, strict=True):
            drafter.extend(prompt)

    def run(self, limits: DecodeLimits) -> list[list[int]]:
        going = list(range(len(self._prompts)))
        while going:
            drafts = self._method.propose([(self._drafters[row], 4) for row in going])
            for row, draft in zip(list(going), drafts, strict=True):
                assert isinstance(draft, DraftProposal), draft
                if self._ended(row, draft, limits):
                    going.remove(row)
                    self._method.end(self._drafters[row])
        return self.texts

    def _ended(self, row: int, draft: DraftProposal, limits: DecodeLimits) -> bool:
        text, target = self.texts[row], self._targets[row]
        draft = draft.clipped(limits.max_tokens - len(text) - 1)
        law_at = target.verify(draft)
        acceptor = self._method.acceptor
        walk = acceptor.walk(draft.tree, law_at, self._chances[row], len(text))
        target.commit(walk)
        for token in walk.tokens(draft.tree):
            text.append(token)
            if token in limits.end_ids:
                return True
        self._drafters[row].extend(walk.tokens(draft.tree))
        return len(text) >= limits.max_tokens
