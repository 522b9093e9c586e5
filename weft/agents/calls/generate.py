"""Draws items, keeps what passes the gates, and bounds how many differ in their values only.

Plain Python, not a workflow: one item takes less time than the engine takes for a node. Gates that
wait for tools or models run side by side in `generate_checked`.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.agents.calls.catalogue import CallTool
from weft.agents.calls.chains import chained, nested
from weft.agents.calls.gates import CallRefusal, check_item
from weft.agents.calls.item import STYLES, CallItem
from weft.agents.calls.styles import PROPOSERS, ItemDraws
from weft.core.errors import InputError

_TRIES: Final = 20
_AHEAD: Final = 4
"""Outcomes that may wait for an earlier one, in widths."""
_DUPLICATE: Final = "duplicate"
_ALL: Final = {**PROPOSERS, "nested": nested, "chained": chained}
Outcome = tuple[CallItem, CallRefusal | str | None]
"""An item with its refusal, `"duplicate"`, or None where it was accepted."""


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """`styles`: weights by style; `per_skeleton`: most items that differ in their values only.

    `offered`: the most tools of an item. `variants`: the share of tools, 0 to 1, that are shown
    under a schema drawn from their own.
    """

    n: int
    styles: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(STYLES, 1.0))
    seed: int = 0
    offered: int = 4
    per_skeleton: int = 2
    variants: float = 0.0


def proposals(tools: Sequence[CallTool], options: GenerateOptions) -> Iterator[CallItem]:
    """Items that no gate has seen, at most 20 for each that is wanted.

    Raises: `InputError` for unknown styles, or fewer than two usable tools.
    """
    rng = random.Random(f"calls-{options.seed}")  # noqa: S311 - not for secrets
    draws = ItemDraws(tools, options.offered, options.variants, rng)
    _check(options, draws.tools)
    names, weights = list(options.styles), list(options.styles.values())
    for _ in range(options.n * _TRIES):
        item = _ALL[rng.choices(names, weights)[0]](draws)
        if item is not None:
            yield item


def generate(tools: Sequence[CallTool], options: GenerateOptions) -> Iterator[Outcome]:
    """Proposed items with what the gates `format` and `semantic` say of them.

    Ends after `n` accepted ones. The same tools and options give the same items.

    Raises: `InputError` for unknown styles, fewer than two usable tools, or where the tools
        give no more items.
    """
    accepted = _Accepted(options)
    for item in proposals(tools, options):
        yield item, accepted.judge(item, check_item(item))
        if accepted.complete:
            return
    accepted.finish()


async def generate_checked(
    attempts: Iterator[Awaitable[Outcome]], options: GenerateOptions, width: int
) -> AsyncGenerator[Outcome, None]:
    """The outcomes of `attempts` in their order, `width` of them at work at any time.

    Ends after `n` accepted ones, and cancels those that are still at work. Raises: as `generate`,
    and what an attempt raises.
    """
    accepted = _Accepted(options)
    begun: deque[asyncio.Future[Outcome]] = deque()
    try:
        while True:
            busy = {attempt for attempt in begun if not attempt.done()}
            _begin(attempts, begun, busy, width)
            if not begun:
                break
            if not begun[0].done():
                await asyncio.wait(busy, return_when=asyncio.FIRST_COMPLETED)
            while begun and begun[0].done():
                item, refusal = begun.popleft().result()
                yield item, accepted.judge(item, refusal)
                if accepted.complete:
                    return
    finally:
        for attempt in begun:
            attempt.cancel()
        if begun:
            await asyncio.wait(begun)
        for attempt in begun:  # one that failed after the end has nobody to tell
            _ = attempt.cancelled() or attempt.exception()
    accepted.finish()


def _begin(
    attempts: Iterator[Awaitable[Outcome]],
    begun: deque[asyncio.Future[Outcome]],
    busy: set[asyncio.Future[Outcome]],
    width: int,
) -> None:
    """Begin attempts until `width` are at work; not too far ahead of the one that is due."""
    while len(busy) < width and len(begun) < _AHEAD * width:
        attempt = next(attempts, None)
        if attempt is None:
            return
        begun.append(asyncio.ensure_future(attempt))
        busy.add(begun[-1])


class _Accepted:
    """Counts accepted items and refuses those that an accepted one differs from in values only."""

    def __init__(self, options: GenerateOptions) -> None:
        self._options = options
        self._seen: Counter[object] = Counter()
        self._count = 0

    @property
    def complete(self) -> bool:
        return self._count == self._options.n

    def judge(self, item: CallItem, refusal: CallRefusal | str | None) -> CallRefusal | str | None:
        if refusal is not None:
            return refusal
        skeleton = item.skeleton()
        if self._seen[skeleton] >= self._options.per_skeleton:
            return _DUPLICATE
        self._seen[skeleton] += 1
        self._count += 1
        return None

    def finish(self) -> None:
        if not self.complete:
            raise InputError(
                f"these tools gave {self._count} of {self._options.n} items",
                hint="those are written; give more tools, or ask for fewer items",
            )


def _check(options: GenerateOptions, usable: Sequence[CallTool]) -> None:
    if unknown := sorted(set(options.styles) - set(STYLES)):
        raise InputError(f"unknown style {unknown[0]!r}", hint=f"styles: {', '.join(STYLES)}")
    if not all(0 <= x < float("inf") for x in options.styles.values()) or not any(
        options.styles.values()
    ):
        raise InputError("weights of styles must be at least 0, and one above", hint="simple=1")
    if len(usable) < 2:
        raise InputError("fewer than two tools have required parameters of known types")
