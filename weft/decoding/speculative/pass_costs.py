"""Costs of passes of a target, by the number of tokens they read and the length of the text.

Measured at first use, then cached: in the process, and in the user's cache folder by model and
machine.
"""

from __future__ import annotations

import hashlib
import math
import platform
import threading
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import torch

from weft.core.ports.clock import Clock, SystemClock
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.speculative import user_cache
from weft.decoding.speculative.trained_drafter import Fingerprint


class CostCurve:
    """The relative cost v(n) of n tokens, with v(1) = 1, interpolated between `measured` times.

    Never falling, whatever the noise; extrapolated beyond the last measurement.

    Raises: `ValueError` without a time for one token, or for invalid times.
    """

    def __init__(self, measured: Mapping[int, float]) -> None:
        if 1 not in measured or any(n < 1 or not t > 0.0 for n, t in measured.items()):
            raise ValueError("a curve needs the time of a pass over one token, and times above 0")
        self._at = sorted(measured)
        self._values: list[float] = []
        for tokens in self._at:
            ratio = measured[tokens] / measured[1]
            self._values.append(max([ratio, *self._values[-1:]]))

    def __call__(self, tokens: int) -> float:
        """v(`tokens`). Raises: `ValueError` below one token."""
        if tokens < 1:
            raise ValueError(f"no pass reads {tokens} tokens")
        right = bisect_left(self._at, tokens)
        if right < len(self._at) and self._at[right] == tokens:
            return self._values[right]
        if len(self._at) == 1:
            return self._values[0]
        right = min(right, len(self._at) - 1)
        (a, b), (low, high) = self._at[right - 1 : right + 1], self._values[right - 1 : right + 1]
        return low + (high - low) * (tokens - a) / (b - a)


class PassCosts:
    """Seconds of a pass, from `measured`: by context length, by the number of tokens it reads.
    Interpolated between context lengths, constant outside them.

    Raises: `ValueError` without a context, or for invalid times.
    """

    def __init__(self, measured: Mapping[int, Mapping[int, float]]) -> None:
        if not measured:
            raise ValueError("no pass was measured")
        self.measured = {context: dict(measured[context]) for context in sorted(measured)}
        self._contexts = list(self.measured)
        self._curves = [CostCurve(times) for times in self.measured.values()]

    def second(self, context: int) -> float:
        """Seconds of a pass over one token, after `context` tokens."""
        return sum(share * self.measured[at][1] for at, share in self._between(context))

    def curve(self, context: int) -> CostCurve:
        """v(n) after `context` tokens."""
        curves = dict(zip(self._contexts, self._curves, strict=True))
        near = self._between(context)
        if len(near) == 1:
            return curves[near[0][0]]
        sizes = sorted({size for at, _ in near for size in self.measured[at]})
        return CostCurve(
            {
                size: sum(share * self.measured[at][1] * curves[at](size) for at, share in near)
                for size in sizes
            }
        )

    def _between(self, context: int) -> list[tuple[int, float]]:
        """The measured contexts around this one, with their shares."""
        right = bisect_left(self._contexts, context)
        if right == 0 or right == len(self._contexts):
            return [(self._contexts[max(right - 1, 0)], 1.0)]
        low, high = self._contexts[right - 1 : right + 1]
        share = (context - low) / (high - low)
        return [(high, 1.0)] if share == 1.0 else [(low, 1.0 - share), (high, share)]


def pays_most(expected: Mapping[int, float], curve: Callable[[int], float]) -> int:
    """The size, in rows without the root, with the highest rate of tokens (PPD, arXiv 2405.18628:
    hardware-aware), the smallest of equals; for drafters whose drafts need no pass.

    `expected`: tokens of a step by size; `curve`: the cost of a pass over so many rows. Raises:
    `ValueError` without a size.
    """
    return max(sorted(expected), key=lambda rows: expected[rows] / curve(1 + rows))


SIZES: Final = (1, 2, 4, 8, 16, 32, 64)
CONTEXTS: Final = (64, 1024)
_ROUNDS: Final = 25

Read = Callable[[int, int], None]
"""One pass: `read(context, tokens)` reads so many tokens after a context."""


def measured(
    read: Read,
    clock: Clock,
    within_s: float,
    contexts: Sequence[int] = CONTEXTS,
    sizes: Sequence[int] = SIZES,
) -> PassCosts:
    """The costs by the fastest of as many rounds as fit into about `within_s` seconds: other load
    only adds to a pass. Sizes and contexts alternate, so that load affects all of them.

    Cases that do not fit even once are left out, except one and two tokens at the shortest context.
    """
    end = clock.now() + within_s
    seconds: dict[tuple[int, int], list[float]] = {}
    cases = [(size, context) for size in sorted(sizes) for context in sorted(contexts)]
    always = set(cases[: 1 + len(contexts) : len(contexts)])
    read(cases[0][1], 1)  # warm up
    for number in range(_ROUNDS):
        order = cases if number % 2 == 0 else cases[::-1]
        for case in order:
            times = seconds.get(case)
            likely = min(times) if times else _likely(case, seconds)
            if clock.now() + likely > end and (times or case not in always):
                continue
            before = clock.now()
            read(case[1], case[0])
            seconds.setdefault(case, []).append(max(clock.now() - before, 1e-9))
        if clock.now() >= end:
            break
    return _costs(seconds, contexts)


def _likely(case: tuple[int, int], seconds: dict[tuple[int, int], list[float]]) -> float:
    """An upper bound for an unmeasured case: each token read alone."""
    smaller = [(size, times) for (size, _), times in seconds.items() if size <= case[0]]
    return min((min(times) * case[0] / size for size, times in smaller), default=0.0)


def _costs(seconds: dict[tuple[int, int], list[float]], contexts: Sequence[int]) -> PassCosts:
    fastest: dict[int, dict[int, float]] = {context: {} for context in contexts}
    for (size, context), times in seconds.items():
        fastest[context][size] = min(times)
    return PassCosts({context: times for context, times in fastest.items() if 1 in times})


_WITHIN_S: Final = 1.5
_measured_costs: dict[str, PassCosts] = {}
_measuring = threading.Lock()


def costs_of(network: Network, clock: Clock | None = None) -> PassCosts:
    """The costs of a loaded model. Takes under two seconds the first time.

    Uses a cache of its own, so that running sequences are not affected.
    """
    name = _name(network)
    with _measuring:
        if name not in _measured_costs:
            path = user_cache.folder() / f"costs-{name}.json"
            costs = _parsed(user_cache.read(path))
            if costs is None:
                costs = measure(network, clock or SystemClock(), _WITHIN_S)
                user_cache.write(path, {str(c): list(t.items()) for c, t in costs.measured.items()})
            _measured_costs[name] = costs
        return _measured_costs[name]


def measure(network: Network, clock: Clock, within_s: float) -> PassCosts:
    """The costs, measured now. Cached texts do not affect them."""
    scratch = network.share(network.layers)
    room = scratch.context_tokens - max(SIZES)
    contexts = sorted({min(context, max(room, 0)) for context in CONTEXTS})
    wait = torch.cuda.synchronize if scratch.embed([0]).is_cuda else None

    def read(context: int, tokens: int) -> None:
        columns = range(context, context + tokens)
        scratch.forward([Span(0, columns, [0] * tokens, tokens)])
        if wait is not None:
            wait()

    return measured(read, clock, within_s, contexts)


def _name(network: Network) -> str:
    row = network.embed([0])
    model = Fingerprint.of(network)
    threads = torch.get_num_threads()
    build = (str(row.dtype), network.quantization, torch.__version__)
    where = (platform.node(), platform.processor(), str(row.device), threads)
    return hashlib.sha256(repr((model, build, where)).encode()).hexdigest()[:32]


def _parsed(value: object) -> PassCosts | None:
    """The costs in a file of `costs_of`; None for other values."""
    if not isinstance(value, dict):
        return None
    try:
        times = {int(c): {int(n): float(s) for n, s in of} for c, of in value.items()}
        if any(not math.isfinite(s) for of in times.values() for s in of.values()):
            return None
        return PassCosts(times)
    except (TypeError, ValueError, OverflowError):
        return None
