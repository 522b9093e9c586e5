"""When programs arrive: bursts, as BurstGPT saw them. Knows nothing of what arrives."""

from __future__ import annotations

import random

SHAPE = 0.5
"""Shape of the gamma distribution of the time between arrivals; below 1 is burstier than Poisson.

From BurstGPT (arXiv 2401.17644), whose "modeled scaling" draws times from a gamma distribution: the
request generator of its authors, github.com/HPMLL/BurstGPT at e92f533, file
example/profile_server/server.py, falls back to `gamma_shape = 0.5` where no fit of a minute is at
hand (its constructor begins at 0.25, burstier still).
"""


def arrivals(source: random.Random, count: int, span_s: float, shape: float = SHAPE) -> list[float]:
    """`count` times in seconds, the first at 0, the last at `span_s`, with gamma gaps between.

    The gaps are scaled to the span, so that the offered load is the one asked for and only the
    bursts within it are drawn.
    """
    gaps = [source.gammavariate(shape, 1.0) for _ in range(count - 1)]
    stretch = span_s / sum(gaps) if gaps else 0.0
    times, now = [0.0], 0.0
    for gap in gaps:
        now += gap * stretch
        times.append(now)
    return times
