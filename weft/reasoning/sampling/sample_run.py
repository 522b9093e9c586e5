"""Runs a sampler: samples are threads that it starts, probes and cancels.

Each sample is a separate request with its own seed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from weft.core.errors import ModelError
from weft.core.ids import NodeId, inside
from weft.core.ports import Delta, ModelRequest, TextDelta
from weft.core.values import JsonSchema, Message
from weft.reasoning.answers import Reader
from weft.reasoning.chat.call import CallProgress, Generation
from weft.reasoning.chat.thread import Amend, ChatThread, Job
from weft.reasoning.samplers.deepconf import ConfidenceWindows, proxy_confidence, token_confidence
from weft.reasoning.samplers.parallel_probe import Prober
from weft.reasoning.samplers.sampler import SamplePool, Sampler, SamplerDecision, SampleState
from weft.reasoning.thought import Sample

Measure = Literal["tail", "bottom", "lowest"]
"""A sample's confidence: that of its last window, the mean of the lowest tenth of its windows, or
the lowest window."""


class SampleMonitor:
    """Monitors the call that writes `branch`.

    `window`: tokens in a window of confidence (None: not measured). `due` is called with the text
    and token ids so far at each multiple of `every` tokens, `changed` when the sampler may have to
    decide. `proxy`: some confidence came from the sampled token alone.
    """

    def __init__(
        self,
        branch: SampleState,
        changed: Callable[[], None],
        *,
        window: int | None = None,
        every: int | None = None,
        due: Callable[[str, tuple[int, ...]], None] | None = None,
    ) -> None:
        self._branch = branch
        self._changed = changed
        self._track = None if window is None else ConfidenceWindows(window)
        self._every = every
        self._due = due
        self._probes = 0
        self._spent: CallProgress | None = None
        self.proxy = False

    @property
    def text(self) -> str:
        """The text so far."""
        return "" if self._spent is None else "".join(self._spent.text)

    def watch(self, spent: CallProgress, delta: Delta) -> None:
        """Receive a piece of the answer."""
        first = not self._branch.tokens
        self._spent = spent
        self._branch.tokens = spent.tokens
        if isinstance(delta, TextDelta) and self._track is not None:
            self._measure(delta, self._track)
        while self._every is not None and spent.tokens >= self._every * (self._probes + 1):
            self._probes += 1
            if self._due is not None:
                self._due("".join(spent.text), tuple(spent.token_ids))
        if first:
            self._changed()

    def confidence(self, measure: Measure) -> float | None:
        """The sample's confidence; None: there are no log probabilities."""
        track = self._track
        if track is None or not track.tokens:
            return None
        if measure == "bottom":
            return track.bottom()
        return track.tail if measure == "tail" else track.lowest_of_all

    def ended(self) -> None:
        """Finish the sample; a sample shorter than a window has its mean confidence."""
        if self._track is not None:
            self._branch.lowest_confidence = self._track.lowest_of_all

    def _measure(self, delta: TextDelta, track: ConfidenceWindows) -> None:
        if delta.top_logprobs:
            found = [token_confidence(top) for top in delta.top_logprobs]
        else:
            found = [proxy_confidence(logprob) for logprob in delta.logprobs]
            self.proxy |= bool(found)
        for value in found:
            track.add(value)
        if track.lowest != self._branch.lowest_confidence:
            self._branch.lowest_confidence = track.lowest
            self._changed()


LONG_PROMPT: Final = 1024
"""The length in characters from which the server computes a prompt once, before its siblings."""

_PLACE: Final = "samples"
_PART: Final = 4


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """The request of a sampler's run: the prompt, the reader of answers, the width.

    A sample has at most `max_tokens`, after a thought of `thinking_tokens` where that is bounded.
    `keep` tokens of the budget stay unspent. `measure`: the confidence of samples (None: none,
    unless the sampler reads it), over windows of `window` tokens. `amend` asks for log
    probabilities.
    """

    messages: Sequence[Message]
    read: Reader
    width: int
    max_tokens: int
    keep: int = 0
    schema: JsonSchema | None = None
    measure: Measure | None = None
    window: int = 2048
    amend: Amend | None = None
    prober: Prober | None = None
    thinking_tokens: int = 0

    @property
    def longest(self) -> int:
        """The most tokens of one sample."""
        return self.max_tokens + self.thinking_tokens


@dataclass(frozen=True, slots=True)
class SampleSet:
    """The result: all samples in order, the indices of the voters, and the reason of the end.

    `weights` of voters, where the sampler sets them. `failures`: reasons of failed samples.
    `hint`: what may mend them. `proxy`: confidences come from sampled tokens alone.
    """

    samples: tuple[Sample, ...]
    voters: tuple[int, ...]
    weights: Mapping[int, float] | None
    why: str
    failures: tuple[str, ...] = ()
    proxy: bool = False
    hint: str | None = None


@dataclass(slots=True)
class _SampleDraw:
    """One sample: its state, thread, monitor and answer."""

    branch: SampleState
    thread: ChatThread
    monitor: SampleMonitor
    node: NodeId | None = None
    reply: Generation | None = None
    requested: bool = False
    due: asyncio.Queue[tuple[str, tuple[int, ...]] | None] = field(default_factory=asyncio.Queue)


class SampleRun:
    """Draws samples in threads below `root` as `sampler` decides."""

    def __init__(self, root: ChatThread, sampler: Sampler, request: SampleRequest) -> None:
        self._root = root
        self._sampler = sampler
        self._request = request
        self._pool = SamplePool()
        self._draws: list[_SampleDraw] = []
        self._queue: deque[_SampleDraw] = deque()
        self._in_flight = 0
        self._changed = asyncio.Event()

    async def run(self) -> SampleSet:
        """Draw until the sampler stops, or nothing can be drawn any more."""
        decision = self._sampler.decide(self._pool)
        async with asyncio.TaskGroup() as waiting:
            self._apply(decision)
            while not decision.stop:
                if self._fill(waiting):
                    await self._changed.wait()
                    self._changed.clear()
                    decision = self._sampler.decide(self._pool)
                else:
                    why = "the budget is spent" if self._queue else "nothing more could be drawn"
                    decision = SamplerDecision(stop=True, why=why)
                self._apply(decision)
        return self._sample_set(decision)

    # -- what was decided --------------------------------------------------------------------

    def _apply(self, decision: SamplerDecision) -> None:
        gone = decision.cancel
        if decision.stop:
            gone = tuple(branch.index for branch in self._pool.running)
        for index in gone:
            self._cancel(self._draws[index], decision.why)
        if decision.start:
            self._begin(decision.start)

    def _begin(self, count: int) -> None:
        """Queue a wave of `count` samples; it is one fork of the root."""
        branches = self._pool.start(count)
        threads = self._root.branch([str(branch.index) for branch in branches], role="sample")
        for branch, thread in zip(branches, threads, strict=True):
            draw = _SampleDraw(branch, thread, self._monitor(branch))
            self._draws.append(draw)
            self._queue.append(draw)

    def _monitor(self, branch: SampleState) -> SampleMonitor:
        window = self._sampler.confidence
        if window is None and self._request.measure is not None:
            window = self._request.window

        def due(text: str, ids: tuple[int, ...]) -> None:
            self._draws[branch.index].due.put_nowait((text, ids))

        every = self._sampler.probe_tokens
        return SampleMonitor(branch, self._changed.set, window=window, every=every, due=due)

    def _cancel(self, draw: _SampleDraw, why: str) -> None:
        if not draw.branch.running:
            return
        draw.branch.status = "cancelled"
        if draw.node is None:
            self._queue.remove(draw)
        else:
            self._root.context.cancel(draw.node, why)

    # -- what runs ---------------------------------------------------------------------------

    def _fill(self, waiting: asyncio.TaskGroup) -> bool:
        """Start what may run now; returns whether a change will follow."""
        place = inside(self._root.context.scope, _PLACE)
        while self._queue and self._in_flight < self._room():
            draw = self._queue.popleft()
            node = draw.thread.node(place, self._job(draw))
            draw.node = node.id
            self._in_flight += 1
            self._root.context.append([node])
            waiting.create_task(self._wait(draw, node.id))
        return self._in_flight > 0

    def _room(self) -> int:
        """The number of parallel samples: at most the width, and as many as the budget pays fully.

        One more may run with a part of its tokens, if that is a quarter or it is the first. The
        first sample of a long prompt runs alone until the prompt is in the server's cache.
        """
        if self._in_flight and self._unprimed():
            return 1
        waiting = (d for d in self._draws if d.node is not None and not d.requested)
        promised = sum(d.branch.running for d in waiting)
        free = max(0, self._root.tokens_left - self._request.keep)
        affordable = self._in_flight - promised + free // self._request.longest
        least = 1 if self._draws[0].node is None else max(1, self._request.longest // _PART)
        if not self._in_flight and free >= least:
            affordable = max(1, affordable)
        return min(self._request.width, affordable)

    def _unprimed(self) -> bool:
        long = sum(len(message.content) for message in self._request.messages) >= LONG_PROMPT
        return long and all(not d.branch.tokens and d.reply is None for d in self._draws)

    async def _wait(self, draw: _SampleDraw, node: NodeId) -> None:
        """Wait for the end of a sample, and record it."""
        outcome = await self._root.context.outcome(node)
        draw.reply = outcome.value if outcome.ok else draw.reply
        self._in_flight -= 1
        draw.monitor.ended()
        self._end(draw.branch, draw.reply)
        self._changed.set()

    def _end(self, branch: SampleState, reply: Generation | None) -> None:
        branch.tokens = max(branch.tokens, 0 if reply is None else reply.tokens)
        if not branch.running:
            return
        if reply is None or not reply.ok:
            branch.status = "failed"
            return
        branch.status = "finished" if reply.status == "finished" else "length"
        branch.key = self._request.read(reply.text, reply.status == "finished")

    def _job(self, draw: _SampleDraw) -> Job[Generation]:
        request = self._request

        async def job(thread: ChatThread) -> Generation:
            async with asyncio.TaskGroup() as group:
                probe_task = None
                if request.prober is not None:
                    probe_task = group.create_task(self._probe(draw, request.prober))
                draw.requested = True
                reply = await thread.ask(
                    "sample",
                    request.messages,
                    max_tokens=request.max_tokens,
                    keep=request.keep,
                    schema=request.schema,
                    amend=request.amend,
                    watch=draw.monitor.watch,
                )
                draw.reply = reply
                if probe_task is not None:
                    draw.due.put_nowait(None)
            thread.returns(reply.text)
            return reply

        return job

    async def _probe(self, draw: _SampleDraw, prober: Prober) -> None:
        probes: ChatThread | None = None
        while (due := await draw.due.get()) is not None:
            if draw.reply is not None:
                continue
            probes = probes or draw.thread.side_thread("probes", role="probe")
            number = len(draw.branch.probes) + 1
            found = None
            with suppress(ModelError):
                found = await prober.probe(probes, number, self._request.messages, *due)
            draw.branch.probes.append(found)
            self._changed.set()

    # -- the end -----------------------------------------------------------------------------

    def _sample_set(self, decision: SamplerDecision) -> SampleSet:
        samples = tuple(self._sample(draw) for draw in self._draws)
        voters = decision.voters
        if voters is None:
            voters = tuple(branch.index for branch in self._pool.ended)
        return SampleSet(
            samples,
            voters,
            decision.weights,
            decision.why,
            tuple(d.reply.reason for d in self._draws if d.reply is not None and d.reply.reason),
            any(draw.monitor.proxy for draw in self._draws),
            next((d.reply.hint for d in self._draws if d.reply and d.reply.hint), None),
        )

    def _sample(self, draw: _SampleDraw) -> Sample:
        branch, reply = draw.branch, draw.reply
        measure = self._request.measure
        return Sample(
            branch.index,
            draw.monitor.text if reply is None else reply.text,
            branch.opinion,
            branch.tokens,
            "failed" if branch.status == "running" else branch.status,
            confidence=None if measure is None else draw.monitor.confidence(measure),
        )


def ask_logprobs(count: int) -> Amend:
    """Asks for the `count` largest log probabilities of each token; 0: the sampled token's only."""

    def amend(request: ModelRequest) -> ModelRequest:
        return replace(request, logprobs=True, top_logprobs=count)

    return amend
