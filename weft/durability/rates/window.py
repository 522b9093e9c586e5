"""The sliding window of one limit: what was granted, is under way and waits. Pure.

Never more than the limit is granted in any 60 seconds of the store's clock. Grants count for one to
two seconds longer, so that requests that travel at different speeds do not crowd at the server.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

WINDOW_S: Final = 60.0
_BUCKET_S: Final = 1.0
_LEASE_S: Final = 15.0
"""How much longer than announced a process may take to ask again; after that it counts as dead."""
_BEHIND_S: Final = 5.0
"""The longest wait behind another process, which may die or cancel."""
_ESTIMATE_S: Final = 1.0
"""The longest wait for tokens that another process has reserved and may use less of."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The most requests and tokens in any 60 seconds; None: no limit."""

    requests: int | None = None
    tokens: int | None = None

    def clamped(self, tokens: int) -> int:
        """`tokens`, or all there are: a larger request would never be granted."""
        return tokens if self.tokens is None else min(tokens, self.tokens)


class RateWindow:
    """The state of one limit, read from `text` and written by `text`.

    A ticket is the unique name of a request. Methods may be repeated with the same ticket.
    """

    def __init__(self, text: str = "") -> None:
        state = json.loads(text) if text else {}
        self._used: list[list[float]] = state.get("used", [])  # [until, requests, tokens]
        self._open: dict[str, list[float]] = state.get("open", {})  # ticket: [until, tokens]
        self._waiting: list[list[str | float]] = state.get("waiting", [])  # [ticket, tokens, lease]
        self._now_s: float = state.get("now", 0.0)

    @property
    def text(self) -> str:
        """The state as JSON."""
        state = {"now": self._now_s, "used": self._used, "open": self._open}
        return json.dumps({**state, "waiting": self._waiting}, separators=(",", ":"))

    def ask(self, ticket: str, tokens: int, limits: RateLimits, now_s: float) -> float:
        """Grant the request of `ticket` and return 0; or the seconds after which to ask again.

        Requests are granted in the order in which they first asked.
        """
        self._advance(now_s)
        if ticket in self._open:  # granted by an attempt whose answer was lost
            return 0.0
        entry = next((each for each in self._waiting if each[0] == ticket), None)
        if entry is None:
            entry = [ticket, tokens, 0.0]
            self._waiting.append(entry)
        first = self._waiting[0] is entry
        at_s = self._planned(ticket, limits)
        if first and at_s <= self._now_s:
            self._waiting.remove(entry)
            until = (math.floor(self._now_s / _BUCKET_S) + 2) * _BUCKET_S + WINDOW_S
            self._open[ticket] = [until, tokens]
            return 0.0
        wait_s = max(at_s - self._now_s, 0.0)
        if not first:
            wait_s = min(max(wait_s, 0.05), _BEHIND_S)
        elif limits.tokens is not None and self._open:
            wait_s = min(wait_s, _ESTIMATE_S)
        entry[2] = self._now_s + wait_s + _LEASE_S
        return max(wait_s, 0.001)

    def due_s(self, ticket: str, limits: RateLimits) -> float:
        """The seconds until the waiting request of `ticket` is granted, as far as can be seen now.

        `ask` may return less: then things may have changed, and it is worth asking again.
        """
        return max(self._planned(ticket, limits) - self._now_s, 0.0)

    def settle(self, ticket: str, tokens: int) -> None:
        """The request of `ticket` has used so many tokens; without effect once it is long ago."""
        found = self._open.pop(ticket, None)
        if found is None:
            return
        for bucket in self._used:
            if bucket[0] == found[0]:
                bucket[1] += 1
                bucket[2] += tokens
                return
        self._used.append([found[0], 1, tokens])

    def withdraw(self, ticket: str) -> None:
        """The request of `ticket` is not made: what it has reserved is free again."""
        self._open.pop(ticket, None)
        self._waiting = [each for each in self._waiting if each[0] != ticket]

    def _advance(self, now_s: float) -> None:
        if now_s < self._now_s - WINDOW_S:  # the clock was set back
            self._used, self._open, self._waiting = [], {}, []
            self._now_s = now_s
        self._now_s = now = max(now_s, self._now_s)
        self._used = [each for each in self._used if each[0] > now]
        self._open = {key: each for key, each in self._open.items() if each[0] > now}
        self._waiting = [each for each in self._waiting if float(each[2]) > now or not each[2]]

    def _planned(self, ticket: str, limits: RateLimits) -> float:
        """The second at which `ticket` can be granted, after those that wait longer."""
        ends = sorted(self._entries())
        requests = sum(each[1] for each in ends)
        tokens = sum(each[2] for each in ends)
        at_s = self._now_s
        for name, wanted, _ in self._waiting:
            need = limits.clamped(int(wanted))
            while ends and not _fits(limits, requests + 1, tokens + need):
                until, freed, freed_tokens = ends.pop(0)
                at_s = max(at_s, until)
                requests, tokens = requests - freed, tokens - freed_tokens
            if name == ticket:
                break
            ends.append((at_s + WINDOW_S, 1, need))
            requests, tokens = requests + 1, tokens + need
        return at_s

    def _entries(self) -> Iterator[tuple[float, float, float]]:
        yield from ((until, requests, tokens) for until, requests, tokens in self._used)
        yield from ((until, 1, tokens) for until, tokens in self._open.values())


def _fits(limits: RateLimits, requests: float, tokens: float) -> bool:
    return (limits.requests is None or requests <= limits.requests) and (
        limits.tokens is None or tokens <= limits.tokens
    )
