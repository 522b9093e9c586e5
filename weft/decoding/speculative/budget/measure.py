"""Measures what passes take: sizes and contexts take turns, so that a busy moment hits them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.core.ports.clock import Clock
from weft.decoding.speculative.budget.costs import Costs

SIZES: Final = (1, 2, 4, 8, 16, 32, 64)
CONTEXTS: Final = (64, 1024)
_ROUNDS: Final = 25

Read = Callable[[int, int], None]
"""One pass: `read(context, tokens)` reads so many tokens behind a context."""


def measured(
    read: Read,
    clock: Clock,
    within_s: float,
    contexts: Sequence[int] = CONTEXTS,
    sizes: Sequence[int] = SIZES,
) -> Costs:
    """The quickest of as many rounds as fit into about `within_s` seconds: what else the machine
    does only adds to a pass.

    What does not fit even once is left out, but for one and two tokens at the shortest context.
    """
    end = clock.now() + within_s
    seconds: dict[tuple[int, int], list[float]] = {}
    cases = [(size, context) for size in sorted(sizes) for context in sorted(contexts)]
    always = set(cases[: 1 + len(contexts) : len(contexts)])
    read(cases[0][1], 1)  # what is set up at the first pass of all
    for number in range(_ROUNDS):
        order = cases if number % 2 == 0 else cases[::-1]
        for case in order:
            known = seconds.get(case)
            likely = min(known) if known else _likely(case, seconds)
            if clock.now() + likely > end and (known or case not in always):
                continue
            before = clock.now()
            read(case[1], case[0])
            seconds.setdefault(case, []).append(max(clock.now() - before, 1e-9))
        if clock.now() >= end:
            break
    return _costs(seconds, contexts)


def _likely(case: tuple[int, int], seconds: dict[tuple[int, int], list[float]]) -> float:
    """What a kind of pass that was never made may take: at most as much as each token alone."""
    smaller = [(size, times) for (size, _), times in seconds.items() if size <= case[0]]
    return min((min(times) * case[0] / size for size, times in smaller), default=0.0)


def _costs(seconds: dict[tuple[int, int], list[float]], contexts: Sequence[int]) -> Costs:
    found: dict[int, dict[int, float]] = {context: {} for context in contexts}
    for (size, context), times in seconds.items():
        found[context][size] = min(times)
    return Costs({context: times for context, times in found.items() if 1 in times})
