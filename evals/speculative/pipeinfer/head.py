"""What PipeInfer's head decides: which runs are sent, which are void, and what is written.

Sans time and threads: results go in, runs come out. After Butler et al. (arXiv 2407.11798). Runs
pass every stage in the order in which they were sent, and from that follows that its keys and
values are exact: a run reads a column only after the run that wrote it has passed, and writes over
columns that only void runs would still want. Alternatives have lanes of their own, begun as copies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evals.speculative.pipeinfer.run import Kind, Run
from weft.decoding.sampling import SamplingParams, TokenRng
from weft.decoding.speculative.acceptance import ExactMatch
from weft.decoding.speculative.draft import ROOT, DraftTree
from weft.decoding.speculative.loop import DecodeLimits
from weft.decoding.speculative.speculation import SpeculativeCounters

_PIECE: Final = 256
"""Tokens of a prompt in one run."""


@dataclass(slots=True)
class Cancelled:
    """Runs that were called off on their way, and their tokens."""

    runs: int = 0
    tokens: int = 0


class Head:
    """One sequence. Send the runs that it gives, in their order, and tell it results in that order.

    `lanes`: slots of the target, at least 1; all but one are for alternatives.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        shaping: SamplingParams,
        chance: TokenRng,
        limits: DecodeLimits,
        lanes: int = 1,
    ) -> None:
        self.text = list(prompt)
        self.counters = SpeculativeCounters()
        self.cancelled = Cancelled()
        self.done = limits.max_tokens < 1
        self.misses = 0
        """Results in a row after which the text went on otherwise than drafted."""
        self._prompt = len(prompt)
        self._shaping = shaping
        self._chance = chance
        self._limits = limits
        self._acceptor = ExactMatch()
        self._flight: deque[Run] = deque()
        self._lane = 0
        self._lanes = lanes
        self._number = 0
        self._epoch = 0

    @property
    def flight(self) -> tuple[Run, ...]:
        """Runs whose results are not there yet, void ones included."""
        return tuple(self._flight)

    @property
    def ahead(self) -> tuple[int, ...]:
        """What the runs on their way expect to follow the text."""
        for run in reversed(self._flight):
            if self._is_main(run):
                return run.beyond(self.text)
        return ()

    @property
    def speculative(self) -> int:
        """Drafted runs on their way that may still hold."""
        return sum(self._is_main(run) and run.kind == "draft" for run in self._flight)

    @property
    def room(self) -> int:
        """How many more tokens may be drafted: the target's own one comes after them."""
        written = len(self.text) - self._prompt
        return max(0, self._limits.max_tokens - written - 1 - len(self.ahead))

    def opening(self) -> list[Run]:
        """The prompt, then its last token alone."""
        end = len(self.text) - 1
        pieces = [range(first, min(first + _PIECE, end)) for first in range(0, end, _PIECE)]
        runs = [
            self._sent("prompt", self._lane, piece.start, self.text[piece.start : piece.stop])
            for piece in pieces
        ]
        return [*runs, self._newest()]

    def drafted(self, tokens: Sequence[int]) -> Run:
        """Send `tokens`, which are expected after the text and all that is ahead of it."""
        first = len(self.text) + len(self.ahead)
        return self._sent("draft", self._lane, first, tokens)

    def alternative(self, place: int, token: int) -> Run | None:
        """`token` may stand in the place of what is expected there; None without a free lane.

        `place` counts from the end of the text. The lane of a void run is free at once: whatever is
        sent to it passes every stage after that run.
        """
        busy = {self._lane, *(run.lane for run in self._flight if not run.cancelled)}
        free = [lane for lane in range(self._lanes) if lane not in busy]
        if not free:
            return None
        first = len(self.text) + place
        run = self._sent("other", free[0], first, [token])
        run.fork = (self._lane, first)
        return run

    def result(self, run: Run, logits: NDArray[np.float32]) -> tuple[tuple[int, ...], list[Run]]:
        """A run has passed: logits [its tokens, vocabulary], of the prompt [0, vocabulary].

        Returns the tokens that are written now, and the runs that must be sent at once.
        """
        assert self._flight[0] is run, "results come in the order of the runs"
        self._flight.popleft()
        if run.cancelled or run.kind == "prompt":
            return (), []
        tokens = self._walk(run, logits)
        self.text += tokens
        void = [other for other in self._flight if other.contradicts(self.text)]
        for other in void:
            self.cancel(other)
        if self.done:
            for other in self._flight:
                self.cancel(other)
            return tokens, []
        return tokens, self._onwards(missed=bool(void) or len(tokens) < len(run.tokens))

    def cancel(self, run: Run) -> None:
        """Stages need not read it any more. Harmless when repeated."""
        if not run.cancelled and run.kind != "prompt":
            run.cancelled = True
            self.cancelled.runs += 1
            self.cancelled.tokens += len(run.tokens)

    def _walk(self, run: Run, logits: NDArray[np.float32]) -> tuple[int, ...]:
        assert (run.lane, run.epoch, run.first) == (self._lane, self._epoch, len(self.text) - 1)
        tree = DraftTree.chain(run.tokens[1:])
        walk = self._acceptor.walk(
            tree,
            lambda node: self._shaping.distribution(logits[node - ROOT]),
            self._chance,
            len(self.text) - self._prompt,
        )
        tokens = walk.tokens(tree)
        for count, token in enumerate(tokens, 1):
            if token in self._limits.end_ids:
                tokens, self.done = tokens[:count], True
                break
        accepted = min(len(walk.path), len(tokens))
        self.counters.step(len(tree), len(tree), walk.tried, accepted, len(tokens))
        self.done |= self.counters.tokens >= self._limits.max_tokens
        return tokens

    def _onwards(self, *, missed: bool) -> list[Run]:
        """Whoever reads the newest token now: a run on its way, in some lane, or a new one."""
        newest = len(self.text) - 1
        holding = [run for run in self._flight if not run.cancelled]
        if any(run.lane == self._lane for run in holding):
            self.misses = 0
            return []
        self.misses = self.misses + 1 if missed else 0
        self._epoch += 1
        for run in holding:
            if run.first == newest:
                self._take_over(run)
                return []
        return [self._newest()]

    def _take_over(self, run: Run) -> None:
        """The lane of an alternative that came true becomes the main one."""
        self._lane = run.lane
        run.epoch = self._epoch

    def _newest(self) -> Run:
        return self._sent("newest", self._lane, len(self.text) - 1, self.text[-1:])

    def _sent(self, kind: Kind, lane: int, first: int, tokens: Sequence[int]) -> Run:
        since = min(first, len(self.text))
        between = self.ahead[: first - len(self.text)] if first > len(self.text) else ()
        run = Run(
            self._number,
            kind,
            self._epoch,
            lane,
            first,
            tuple(tokens),
            since,
            (*between, *tokens),
        )
        self._number += 1
        self._flight.append(run)
        return run

    def _is_main(self, run: Run) -> bool:
        return run.lane == self._lane and not run.cancelled and run.kind != "prompt"
