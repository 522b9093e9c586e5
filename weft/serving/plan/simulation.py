"""Iteration-level simulation of continuous batching with vLLM's scheduling.

The idea is that of APEX (Lin et al., "APEX: An Extensible and Dynamism-Aware Simulator for
Automated Parallel Execution in LLM Serving", 2024): walk through the engine's iterations and ask a
model of the hardware for the duration of each. Between two events (an arrival, a prompt, a finished
request, a full cache) all iterations decode the same sequences, and their durations grow linearly
with the context, so they are summed in closed form.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil, inf, sqrt
from typing import Protocol

from weft.serving.plan.latency import ForwardBatch
from weft.serving.plan.traffic import Traffic, TrafficRequest


@dataclass(slots=True, eq=False)
class SimulatedRequest:
    """The state of one request.

    length_tokens      to compute before the next token comes: the prompt; after a preemption
                       also what was written until then
    computed_tokens    the part of it in the KV cache
    produced_tokens    written so far; while decoding, up to the step `joined_step`
    own_tokens         charged for it in the KV cache, apart from a shared prefix
    turn               grows with every admission, to recognise old heap entries
    """

    request: TrafficRequest
    length_tokens: int
    computed_tokens: int = 0
    produced_tokens: int = 0
    own_tokens: int = 0
    joined_step: int = 0
    turn: int = 0
    decoding: bool = False
    holds_prefix: bool = False
    first_s: float = -1.0
    finished_s: float = -1.0

    @property
    def ttft_s(self) -> float:
        """From arrival to the first token."""
        return self.first_s - self.request.arrival_s

    @property
    def tpot_s(self) -> float | None:
        """Mean time of each token after the first; None if there was only one."""
        further = self.request.output_tokens - 1
        return (self.finished_s - self.first_s) / further if further else None

    @property
    def latency_s(self) -> float:
        """From arrival to the last token."""
        return self.finished_s - self.request.arrival_s


_Prefix = tuple[str | None, int]  # its name, and its whole blocks in tokens


class SimulatedCache:
    """The KV cache of one replica, in tokens. Mutates `own_tokens` and `holds_prefix` of requests.

    Every sequence is charged one block more than its tokens, which bounds its partly filled blocks.
    Shared prefixes are charged once while they are used; afterwards they stay for the next user as
    long as there is room, as free blocks keep their content in vLLM.
    """

    def __init__(self, capacity_tokens: int, block_tokens: int) -> None:
        self.capacity_tokens = capacity_tokens
        self.used_tokens = 0
        self.peak_tokens = 0
        self._block = block_tokens
        self._users: dict[_Prefix, int] = {}  # of every prefix that was ever computed

    @property
    def free_tokens(self) -> int:
        """The number of tokens that still fit."""
        return self.capacity_tokens - self.used_tokens

    def admit(self, job: SimulatedRequest, spare_tokens: int) -> bool:
        """Reserve room for all that `job` has to compute, if `spare_tokens` more would be free.

        A cached prefix counts as computed, in whole blocks; one token is always computed.
        """
        prefix = self._prefix(job)
        shared = 0
        if prefix in self._users:
            shared = self._whole_blocks(min(prefix[1], job.length_tokens - 1))
        own = job.length_tokens - shared + self._block
        fresh = prefix[1] if shared and not self._users[prefix] else 0
        if own + fresh + spare_tokens > self.free_tokens:
            return False
        job.own_tokens, job.computed_tokens, job.holds_prefix = own, shared, bool(shared)
        if shared:
            self._users[prefix] += 1
        self.add(own + fresh)
        return True

    def _prefix(self, job: SimulatedRequest) -> _Prefix:
        return job.request.prefix, self._whole_blocks(job.request.prefix_tokens)

    def _whole_blocks(self, tokens: int) -> int:
        return tokens // self._block * self._block

    def add(self, tokens: int) -> None:
        """Count further tokens. Never beyond the capacity."""
        self.used_tokens += tokens
        assert self.used_tokens <= self.capacity_tokens, "the simulated KV cache overflows"
        self.peak_tokens = max(self.peak_tokens, self.used_tokens)

    def keep_prefix(self, job: SimulatedRequest) -> None:
        """Share the prefix of `job`, which has computed its prompt."""
        prefix = self._prefix(job)
        if prefix[0] is None or not prefix[1] or prefix in self._users:
            return
        self._users[prefix] = 1
        job.own_tokens -= prefix[1]
        job.holds_prefix = True

    def release(self, job: SimulatedRequest) -> None:
        """Release the tokens of `job`, which is done or preempted."""
        self.used_tokens -= job.own_tokens
        if job.holds_prefix:
            prefix = self._prefix(job)
            self._users[prefix] -= 1
            if not self._users[prefix]:
                self.used_tokens -= prefix[1]
        job.own_tokens, job.holds_prefix = 0, False


class Durations(Protocol):
    """A model of iteration durations."""

    def seconds(self, batch: ForwardBatch) -> float:
        """The duration of one iteration over `batch`; linear in the context of decodes alone."""
        ...


class SimulatedReplica:
    """One engine: first come first served, chunked prefill, preemption by recomputation.

    Each iteration decodes all running sequences and fills the rest of the token budget with
    prompts: those already begun first, then waiting ones, which are admitted while there is a slot
    and their whole prompt fits the KV cache. When the next tokens do not fit, the sequence admitted
    last loses its cache and waits at the front.
    """

    def __init__(
        self, durations: Durations, *, kv_tokens: int, block_tokens: int, slots: int, budget: int
    ) -> None:
        self.now_s = 0.0
        self.iterations = 0
        self.preemptions = 0
        self.prefilled_tokens = 0
        self.produced_tokens = 0
        self.done: list[SimulatedRequest] = []
        self.cache = SimulatedCache(kv_tokens, block_tokens)
        self._durations, self._slots, self._budget = durations, slots, budget
        self._waiting: deque[SimulatedRequest] = deque()
        self._running: dict[SimulatedRequest, None] = {}  # in order of admission
        self._prefilling: list[SimulatedRequest] = []
        # heap: step of the last token, turn, job
        self._ends: list[tuple[int, int, SimulatedRequest]] = []
        self._step = 0
        self._turns = 0
        self._decodes = 0
        self._context = 0

    @property
    def outstanding(self) -> int:
        """The number of unfinished requests."""
        return len(self._waiting) + len(self._running)

    def submit(self, request: TrafficRequest) -> None:
        """Add a request that arrives now. It must fit an empty cache."""
        self.now_s = max(self.now_s, request.arrival_s)
        self._waiting.append(SimulatedRequest(request, request.prompt_tokens))

    def advance(self, until_s: float = inf) -> None:
        """Run iterations until the first one that ends at `until_s` or later, or all is done."""
        while self.outstanding and self.now_s < until_s:
            chunks = self._chunks(admitting=self._ensure_room())
            if chunks:
                self._mixed(chunks)
            else:
                self._decode(until_s)

    def _ensure_room(self) -> bool:
        """Preempt until every decode's next token fits; whether none was preempted."""
        fits = True
        while self._decodes > self.cache.free_tokens:
            self._preempt(self._running.popitem()[0])
            fits = False
        return fits

    def _preempt(self, job: SimulatedRequest) -> None:
        self.preemptions += 1
        if job.decoding:
            self._leave_decodes(job)
        else:
            self._prefilling.remove(job)
        self.cache.release(job)
        job.length_tokens = job.request.prompt_tokens + job.produced_tokens
        job.turn = 0
        self._waiting.appendleft(job)

    def _chunks(self, *, admitting: bool) -> list[tuple[SimulatedRequest, int]]:
        """The prompts that this iteration computes, and the number of tokens of each."""
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

    def _mixed(self, chunks: list[tuple[SimulatedRequest, int]]) -> None:
        """One iteration with prompts."""
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
            1,
            self._durations.seconds(
                ForwardBatch(tokens, pairs, decodes, context, decodes + complete)
            ),
        )
        for job, _ in chunks:
            if job.computed_tokens == job.length_tokens:
                self._first_token(job)
        self._finish_due()

    def _decode(self, until_s: float) -> None:
        """Iterations without prompts, until the next event."""
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
        """The duration of iteration number `step` from now."""
        count = self._decodes
        return self._durations.seconds(
            ForwardBatch(0, 0, count, self._context + count * step, count)
        )

    def _pass(self, steps: int, seconds: float) -> None:
        grown = steps * self._decodes
        self.now_s += seconds
        self.iterations += steps
        self.produced_tokens += grown
        self._step += steps
        self._context += grown
        self.cache.add(grown)

    def _first_token(self, job: SimulatedRequest) -> None:
        """Finish a prompt, which produces one token; the others come by decoding."""
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

    def _leave_decodes(self, job: SimulatedRequest) -> None:
        """Add what the steps since `job` joined have produced."""
        steps = self._step - job.joined_step
        job.produced_tokens += steps
        job.own_tokens += steps
        self._decodes -= 1
        self._context -= job.length_tokens + steps
        job.decoding = False


def _steps_within(span_s: float, first_s: float, slope_s: float) -> int:
    """The fewest iterations that take `span_s` together; the first takes `first_s`."""
    if span_s == inf:
        return 1 << 60
    if slope_s <= 0:
        return max(1, ceil(span_s / first_s))
    b = first_s - slope_s / 2
    return max(1, ceil((sqrt(b * b + 2 * slope_s * span_s) - b) / slope_s))


def serve(traffic: Traffic, replicas: Sequence[SimulatedReplica]) -> None:
    """Run all requests to their end; the results are in each replica's `done`.

    A request joins the replica with the fewest unfinished requests at its arrival.
    """
    for request in traffic.requests:
        for replica in replicas:
            replica.advance(request.arrival_s)
        min(replicas, key=lambda replica: replica.outstanding).submit(request)
    for replica in replicas:
        replica.advance()
