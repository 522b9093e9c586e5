"""Continuous batching, one iteration and one sequence at a time: slow and plain, to compare with.

Shares nothing with the simulator but its policy and the durations. Knows no shared prefixes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.serving.plan.latency import ForwardBatch
from weft.serving.plan.simulation import Durations
from weft.serving.plan.traffic import TrafficRequest


@dataclass(eq=False)
class Course:
    """What becomes of one request. `goal` tokens must be cached before the next one is written."""

    request: TrafficRequest
    goal: int
    cached: int = 0
    written: int = 0
    first_s: float = -1.0
    finished_s: float = -1.0

    @property
    def decoding(self) -> bool:
        return self.cached >= self.goal

    def write(self, now: float) -> bool:
        """Whether that was the last token."""
        self.written += 1
        if self.first_s < 0:
            self.first_s = now
        if self.written == self.request.output_tokens:
            self.finished_s = now
        return self.finished_s >= 0


class Slow:
    """One engine."""

    def __init__(
        self, durations: Durations, *, kv_tokens: int, block: int, slots: int, budget: int
    ) -> None:
        self.durations, self.kv_tokens, self.block = durations, kv_tokens, block
        self.slots, self.budget = slots, budget
        self.waiting: list[Course] = []
        self.running: list[Course] = []
        self.now_s = 0.0
        self.preemptions = 0

    def run(self, requests: Sequence[TrafficRequest]) -> list[Course]:
        """All requests to their end."""
        courses = [Course(request, request.prompt_tokens) for request in requests]
        coming = list(courses)
        while coming or self.waiting or self.running:
            if not self.waiting and not self.running:
                self.now_s = max(self.now_s, coming[0].request.arrival_s)
            while coming and coming[0].request.arrival_s <= self.now_s:
                self.waiting.append(coming.pop(0))
            self.iterate()
        return courses

    def iterate(self) -> None:
        nobody_left = self.preempt()
        decodes = [course for course in self.running if course.decoding]
        chunks = self.chunks(len(decodes), nobody_left)
        self.now_s += self.durations.seconds(batch(decodes, chunks))
        for course, count in chunks:
            course.cached += count
        for course in decodes:
            course.cached += 1
        for course in [*decodes, *(c for c, _ in chunks if c.decoding)]:
            if course.write(self.now_s):
                self.running.remove(course)

    def charged(self) -> int:
        return sum(max(course.goal, course.cached) + self.block for course in self.running)

    def preempt(self) -> bool:
        before = self.preemptions
        while self.charged() + sum(c.decoding for c in self.running) > self.kv_tokens:
            victim = self.running.pop()
            victim.cached, victim.goal = 0, victim.request.prompt_tokens + victim.written
            self.waiting.insert(0, victim)
            self.preemptions += 1
        return self.preemptions == before

    def chunks(self, decodes: int, admitting: bool) -> list[tuple[Course, int]]:
        left = self.budget - decodes
        chunks = []
        for course in self.running:
            count = min(left, course.goal - course.cached)
            if count > 0:
                chunks.append((course, count))
                left -= count
        while admitting and self.waiting and left > 0 and len(self.running) < self.slots:
            goal = self.waiting[0].goal
            if self.charged() + goal + self.block + decodes > self.kv_tokens:
                break
            self.running.append(self.waiting.pop(0))
            chunks.append((self.running[-1], min(left, goal)))
            left -= min(left, goal)
        return chunks


def batch(decodes: Sequence[Course], chunks: Sequence[tuple[Course, int]]) -> ForwardBatch:
    """What one iteration works on, counted token by token."""
    return ForwardBatch(
        prefill_tokens=sum(count for _, count in chunks),
        prefill_pairs=sum(sum(range(c.cached + 1, c.cached + n + 1)) for c, n in chunks),
        decodes=len(decodes),
        decode_context=sum(course.cached + 1 for course in decodes),
        sampled=len(decodes) + sum(c.cached + n == c.goal for c, n in chunks),
    )
