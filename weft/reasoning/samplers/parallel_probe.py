"""Parallel-Probe: asks each sample for its current answer, prunes minorities, and stops early.

From the release of Zheng et al. (2026), the variant in which pruned samples do not vote. A probe is
a separate call, which adds nothing to the sample; its words are ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from weft.core.errors import CapabilityError
from weft.core.generated_text import open_thought
from weft.core.ports import Capabilities, ModelClient, ModelRequest, Tokenizing
from weft.core.values import Message
from weft.reasoning.answers import Reader
from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.samplers.sampler import GO_ON, SamplePool, SamplerDecision, SampleState
from weft.reasoning.selection.vote import Vote, count_votes

PROBE_TOKENS: Final = 24
"""The token limit of a probe's answer."""

_LEAD: Final = "The final answer is \\boxed{"


class Prober:
    """Probes samples of `model`, all of the same messages, in their own threads.

    Raises: `CapabilityError` when the model can continue neither token ids nor an answer.
    """

    def __init__(self, model: ModelClient, capabilities: Capabilities, read: Reader) -> None:
        by_ids = isinstance(model, Tokenizing) and capabilities.prompt_token_ids
        if not by_ids and not capabilities.continuation:
            raise CapabilityError(
                f"{model.model} cannot go on with an unfinished answer, which probes need",
                hint="use another sampler, or a completion server (vLLM) or the local model",
            )
        self._model = model
        self._read = read
        self._opened: str | None = None

    async def probe(
        self,
        thread: ChatThread,
        number: int,
        messages: Sequence[Message],
        text: str,
        ids: tuple[int, ...],
    ) -> str | None:
        """The key of the answer of a sample that wrote `text` (with token ids `ids`, if known)."""
        if self._opened is None:
            self._opened = await thread.opened(messages)
        lead = _lead(self._opened + await self._spelled(text, ids))
        tail = await self._tail(text, ids, lead)

        def amend(request: ModelRequest) -> ModelRequest:
            sampling = replace(request.sampling, top_p=None)
            if request.prompt_token_ids:
                prompt = request.prompt_token_ids + tail
                return replace(request, prompt_token_ids=prompt, sampling=sampling)
            unfinished = Message("assistant", text + lead)
            return replace(request, messages=(*request.messages, unfinished), sampling=sampling)

        reply = await thread.ask(
            f"probe {number}",
            messages,
            purpose="probe",
            max_tokens=PROBE_TOKENS,
            temperature=0.0,
            amend=amend,
        )
        return self._read(_LEAD + reply.text, False) if reply.ok else None

    async def _spelled(self, text: str, ids: tuple[int, ...]) -> str:
        """The text with special tokens, which servers leave out of it."""
        if not ids or not isinstance(self._model, Tokenizing):
            return text
        try:
            return await self._model.decode(ids)
        except CapabilityError:
            return text

    async def _tail(self, text: str, ids: tuple[int, ...], lead: str) -> tuple[int, ...]:
        """The ids after the prompt, without encoding the sample's own ids again."""
        if not isinstance(self._model, Tokenizing):
            return ()
        try:
            written = ids or await self._model.encode(text)
            return written + await self._model.encode(lead, special=True)
        except CapabilityError:
            return ()


def _lead(text: str) -> str:
    """The lead-in to an answer; it closes an open thought first."""
    end = open_thought(text)
    return f"\n{end}\n\n{_LEAD}" if end else f"\n\n{_LEAD}"


@dataclass(slots=True)
class ParallelProbeSampler:
    """`n` parallel samples, each probed at every multiple of `every` tokens.

    A round ends when all running samples have its probe; the first two make one, as released. After
    `warmup` rounds a sample that disagreed with the majority in `patience` consecutive rounds is
    pruned: it is cancelled and has no vote. Stops when the majority has been the same for `stable`
    rounds beyond the first, or when nothing runs.
    """

    n: int = 64
    every: int = 500
    warmup: int = 15
    patience: int = 7
    stable: int = 40
    confidence: None = None
    _round: int = field(default=0, init=False)
    _dissent: Counter[int] = field(default_factory=Counter, init=False)
    _pruned: set[int] = field(default_factory=set, init=False)
    _majority: str | None = field(default=None, init=False)
    _same: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        for name in ("n", "every", "patience", "stable"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.warmup < 0:
            raise ValueError(f"warmup must not be negative, got {self.warmup}")

    @property
    def limit(self) -> int:
        return self.n

    @property
    def probe_tokens(self) -> int:
        return self.every

    def decide(self, pool: SamplePool) -> SamplerDecision:
        """Start all; at the end of a round, prune, and stop when the majority is stable."""
        if not pool.branches:
            return SamplerDecision(start=self.n)
        cancel: list[int] = []
        while self._round_complete(pool):
            cancel += self._close_round(pool)
            if self._same >= self.stable:
                why = f"the majority is the same for {self._same} rounds of {self.every} tokens"
                return self._stop(pool, why)
        if not any(branch.index not in self._pruned for branch in pool.running):
            return self._stop(pool, f"all {self.n} samples have ended or are pruned")
        if cancel:
            why = f"disagreed with the majority in {self.patience} rounds in a row"
            return SamplerDecision(cancel=tuple(cancel), why=why)
        return GO_ON

    def _round_complete(self, pool: SamplePool) -> bool:
        running = [b for b in pool.running if b.index not in self._pruned]
        return bool(running) and all(len(b.probes) >= self._round + 2 for b in running)

    def _close_round(self, pool: SamplePool) -> list[int]:
        votes = self._votes(pool, self._round + 2)
        majority = _majority(votes)
        pruned: list[int] = []
        if self._round >= self.warmup and len(votes) > 1:
            running = (branch.index for branch in pool.running if branch.index in votes)
            pruned = [index for index in running if self._should_prune(index, votes, majority)]
            self._pruned.update(pruned)
            majority = _majority(self._votes(pool, self._round + 2)) or majority
        self._same = self._same + 1 if majority == self._majority else 0
        self._majority = majority
        self._round += 1
        return pruned

    def _should_prune(self, index: int, votes: dict[int, str | None], majority: str | None) -> bool:
        self._dissent[index] = self._dissent[index] + 1 if votes[index] != majority else 0
        return self._dissent[index] >= self.patience

    def _votes(self, pool: SamplePool, probes: int) -> dict[int, str | None]:
        """The answer of each unpruned sample at its probe number `probes`, or at its end."""
        return {
            branch.index: _at(branch, probes)
            for branch in pool.branches
            if branch.index not in self._pruned and branch.status != "cancelled"
        }

    def _stop(self, pool: SamplePool, why: str) -> SamplerDecision:
        voters = tuple(self._votes(pool, self._round + 1))
        pruned = f"; {len(self._pruned)} of {self.n} pruned" if self._pruned else ""
        return SamplerDecision(stop=True, voters=voters, why=why + pruned)


def _at(branch: SampleState, probes: int) -> str | None:
    if branch.running and len(branch.probes) >= probes:
        return branch.probes[probes - 1]
    return branch.opinion


def _majority(votes: dict[int, str | None]) -> str | None:
    cast = [Vote(index, key, 0) for index, key in votes.items() if key is not None]
    tallies = count_votes(cast, "first")
    return tallies[0].key if tallies else None
