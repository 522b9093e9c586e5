"""How long prompts, answers and tool calls are, after BurstGPT. Knows no programs.

BurstGPT: arXiv 2401.17644 and github.com/HPMLL/BurstGPT at e92f533.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from itertools import accumulate

SCALE = 0.2
"""BurstGPT's tokens are divided by five: what a 135M model on two cores serves in a minute."""


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Whole numbers around `median`, `sigma` the deviation of their logarithm, within bounds."""

    median: float
    sigma: float
    least: int
    most: int

    def draw(self, source: random.Random) -> int:
        """One number."""
        drawn = source.lognormvariate(math.log(self.median), self.sigma)
        return min(self.most, max(self.least, round(drawn)))


class Zipf:
    """Numbers from `least` to `most`: the k-th has a chance proportional to k ** -exponent."""

    def __init__(self, exponent: float, least: int, most: int) -> None:
        self._numbers = range(least, most + 1)
        weights = (k**-exponent for k in range(1, len(self._numbers) + 1))
        self._cumulative = list(accumulate(weights))

    def draw(self, source: random.Random) -> int:
        """One number."""
        return source.choices(self._numbers, cum_weights=self._cumulative)[0]


# Conversations: geometric mean and deviation of the logarithm of the first 32 requests of the trace
# that have an answer (BurstGPT_1.csv as the data set's page shows it): prompts 363 tokens and 1.41,
# answers 283 and 0.77. A small sample; the authors' figure of answer by prompt length (img/
# req-res.png) shows medians of 100 to 450 and 90 % of the answers between 20 and 700.
CHAT_PROMPT = LogNormal(363 * SCALE, 1.41, 16, 512)
CHAT_ANSWER = LogNormal(283 * SCALE, 0.77, 8, 256)

# API calls: the authors' generator draws lengths from Zipf's law with exponent 1.1 below 1,024
# tokens (example/profile_server/server.py, `zipf_param`).
API_ANSWER = Zipf(1.1, 8, round(1024 * SCALE))

# What follows is ours: BurstGPT has no agents. ReAct turns write a thought and a call, read what
# the tool gave, and few programs have many turns.
TURNS = Zipf(1.1, 2, 16)
TURN_ANSWER = LogNormal(30, 0.5, 8, 128)
OBSERVATION = LogNormal(60, 0.8, 16, 320)
TOOL_MS = LogNormal(600, 0.8, 100, 5_000)
DOCUMENT = LogNormal(700, 0.5, 256, 2_048)
