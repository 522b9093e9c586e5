"""A request inside the simulated engine. Knows no time of its own."""

from __future__ import annotations

from dataclasses import dataclass

from weft.serving.plan.traffic import Request


@dataclass(slots=True, eq=False)
class Job:
    """What has become of one request.

    length_tokens      to compute before the next token comes: the prompt; after a preemption
                       also what was written until then
    computed_tokens    of those, how many are in the KV cache
    produced_tokens    written so far; while decoding, up to the step `joined_step`
    own_tokens         what it is charged for in the KV cache, apart from a shared prefix
    turn               grows with every admission, so that old heap entries are told from new ones
    """

    request: Request
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
        """Mean time of each token after the first; None if there was one only."""
        further = self.request.output_tokens - 1
        return (self.finished_s - self.first_s) / further if further else None

    @property
    def latency_s(self) -> float:
        """From arrival to the last token."""
        return self.finished_s - self.request.arrival_s
