"""Iteration-level simulation of continuous batching, as vLLM's scheduler does it. Knows no model.

The idea is that of APEX (Lin et al., "APEX: An Extensible and Dynamism-Aware Simulator for
Automated Parallel Execution in LLM Serving", 2024): walk through the engine's iterations and ask a
model of the hardware how long each takes. Between two events (an arrival, a prompt, a finished
request, a full cache) all iterations decode the same sequences, and their durations grow linearly
with the context, so that they are summed in closed form instead of one by one.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from math import ceil, inf, sqrt
from typing import Protocol

from weft.serving.plan.cache import Cache
from weft.serving.plan.job import Job
from weft.serving.plan.latency import Batch
from weft.serving.plan.traffic import Request


class Durations(Protocol):
    """Something that knows how long an iteration takes."""

    def seconds(self, batch: Batch) -> float:
        """The duration of one iteration over `batch`; linear in the context of decodes alone."""
        ...


class Replica:
    """One engine: first come first served, chunked prefill, preemption by recomputation.

    Each iteration decodes all running sequences and fills the rest of the token budget with
    prompts: those already begun first, then waiting ones, which are admitted while there is a slot
    and their whole prompt fits the KV cache. When the next tokens do not fit, the sequence admitted
    last gives up its cache and waits at the front.
    """

    def __init__(
        self, durations: Durations, *, kv_tokens: int, block_tokens: int, slots: int, budget: int
    ) -> None:
        self.now_s = 0.0
        self.iterations = 0
        self.preemptions = 0
        self.prefilled_tokens = 0
        self.produced_tokens = 0
        self.done: list[Job] = []
        self.cache = Cache(kv_tokens, block_tokens)
        self._durations, self._slots, self._budget = durations, slots, budget
        self._waiting: deque[Job] = deque()
        self._running: dict[Job, None] = {}  # in order of admission
        self._prefilling: list[Job] = []
        self._ends: list[tuple[int, int, Job]] = []  # heap: step of the last token, turn, job
        self._step = 0
        self._turns = 0
        self._decodes = 0
        self._context = 0

    @property
    def outstanding(self) -> int:
        """Requests that are not finished."""
        return len(self._waiting) + len(self._running)

    def submit(self, request: Request) -> None:
        """A request that arrives now. It must fit an empty cache."""
        self.now_s = max(self.now_s, request.arrival_s)
        self._waiting.append(Job(request, request.prompt_tokens))

    def advance(self, until_s: float = inf) -> None:
        """Run iterations until the first one that ends at `until_s` or later, or all is done."""
        while self.outstanding and self.now_s < until_s:
            chunks = self._chunks(admitting=self._make_room())
            if chunks:
                self._mixed(chunks)
            else:
                self._decode(until_s)

    def _make_room(self) -> bool:
        """Preempt until every decode's next token fits. Whether nobody had to go."""
        nobody = True
        while self._decodes > self.cache.free_tokens:
            self._preempt(self._running.popitem()[0])
            nobody = False
        return nobody

    def _preempt(self, job: Job) -> None:
        self.preemptions += 1
        if job.decoding:
            self._leave_decodes(job)
        else:
            self._prefilling.remove(job)
        self.cache.release(job)
        job.length_tokens = job.request.prompt_tokens + job.produced_tokens
        job.turn = 0
        self._waiting.appendleft(job)

    def _chunks(self, *, admitting: bool) -> list[tuple[Job, int]]:
        """Which prompts are computed in this iteration, and how many tokens of each."""
        budget = self._budget - self._decodes
        chunks = []
        for job in self._prefilling:
            tokens = min(budget, job.length_tokens - job.computed_tokens)
            if tokens > 0:
                chunks.append((job, tokens))
                budget -= tokens
        while admitting and budget > 0 and self._waiting and len(self._running) < self._slots:
            job = self._waiting[0]
            if not self.cache.admit(job, self._decodes):
                break
            self._running[self._waiting.popleft()] = None
            self._prefilling.append(job)
            self._turns += 1
            job.turn = self._turns
            tokens = min(budget, job.length_tokens - job.computed_tokens)
            chunks.append((job, tokens))
            budget -= tokens
        return chunks

    def _mixed(self, chunks: list[tuple[Job, int]]) -> None:
        """One iteration with prompts in it."""
        tokens = pairs = complete = 0
        for job, count in chunks:
            start, end = job.computed_tokens, job.computed_tokens + count
            tokens += count
            pairs += (end * (end + 1) - start * (start + 1)) // 2
            job.computed_tokens = end
            complete += end == job.length_tokens
        self.prefilled_tokens += tokens
        context, decodes = self._context + self._decodes, self._decodes
        self._pass(
            1, self._durations.seconds(Batch(tokens, pairs, decodes, context, decodes + complete))
        )
        for job, _ in chunks:
            if job.computed_tokens == job.length_tokens:
                self._first_token(job)
        self._finish_due()

    def _decode(self, until_s: float) -> None:
        """As many iterations without prompts as pass until the next event."""
        count = self._decodes
        room = self.cache.free_tokens // count
        while self._ends[0][1] != self._ends[0][2].turn:
            heappop(self._ends)
        most = min(room, self._ends[0][0] - self._step)
        first = self._seconds_after(1)
        last = self._seconds_after(most) if most > 1 else first
        slope = (last - first) / (most - 1) if most > 1 else 0.0
        steps = min(most, _steps_within(until_s - self.now_s, first, slope))
        self._pass(steps, steps * first + slope * steps * (steps - 1) / 2)
        self._finish_due()

    def _seconds_after(self, step: int) -> float:
        """The duration of the so-manieth iteration from now."""
        count = self._decodes
        return self._durations.seconds(Batch(0, 0, count, self._context + count * step, count))

    def _pass(self, steps: int, seconds: float) -> None:
        grown = steps * self._decodes
        self.now_s += seconds
        self.iterations += steps
        self.produced_tokens += grown
        self._step += steps
        self._context += grown
        self.cache.add(grown)

    def _first_token(self, job: Job) -> None:
        """The prompt is complete, which gives one token; the others come by decoding."""
        self._prefilling.remove(job)
        self.cache.keep_prefix(job)
        self.produced_tokens += 1
        job.produced_tokens += 1
        if job.first_s < 0:
            job.first_s = self.now_s
        job.decoding, job.joined_step = True, self._step
        self._decodes += 1
        self._context += job.length_tokens
        left = job.request.output_tokens - job.produced_tokens
        heappush(self._ends, (self._step + left, job.turn, job))

    def _finish_due(self) -> None:
        while self._ends and self._ends[0][0] <= self._step:
            _, turn, job = heappop(self._ends)
            if turn == job.turn:
                self._leave_decodes(job)
                self.cache.release(job)
                del self._running[job]
                job.finished_s = self.now_s
                self.done.append(job)

    def _leave_decodes(self, job: Job) -> None:
        """Settle what the steps since it joined have added."""
        steps = self._step - job.joined_step
        job.produced_tokens += steps
        job.own_tokens += steps
        self._decodes -= 1
        self._context -= job.length_tokens + steps
        job.decoding = False


def _steps_within(span_s: float, first_s: float, slope_s: float) -> int:
    """The fewest iterations that take `span_s` together, the first `first_s`, each longer."""
    if span_s == inf:
        return 1 << 60
    if slope_s <= 0:
        return max(1, ceil(span_s / first_s))
    b = first_s - slope_s / 2
    return max(1, ceil((sqrt(b * b + 2 * slope_s * span_s) - b) / slope_s))
