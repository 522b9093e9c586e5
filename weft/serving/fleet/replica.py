"""One replica as the fleet sees it: its load, its limit, and the prompts in its prefix cache.

Prompts are compared block by block through chained hashes, as in prefix caches: a block's hash
covers everything before it. Blocks count characters or token ids, unlike the server's own.
"""

from __future__ import annotations

import asyncio
import json
import math
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Sequence

from weft.core.errors import ModelError
from weft.core.ports.clock import Timer
from weft.core.ports.model import ModelClient, ModelRequest
from weft.core.values import Message


class ConcurrencyLimit:
    """A bound that adapts to the replica's capacity, never above `ceiling` nor below one call.

    Additive increase, multiplicative decrease (Chiu and Jain 1989), as in TCP congestion control.
    """

    def __init__(self, ceiling: int | None) -> None:
        self._ceiling = math.inf if ceiling is None else float(ceiling)
        self._value = self._ceiling

    @property
    def calls(self) -> float:
        """Most calls at once; infinite without a bound."""
        return self._value

    def overloaded(self, running: int) -> None:
        """The replica refused one of `running` calls: allow half of them."""
        self._value = max(1.0, min(self._value, running) / 2)

    def succeeded(self) -> None:
        """A call completed: one more call may run for every full round of them."""
        self._value = min(self._ceiling, self._value + 1 / self._value)


BLOCK_CHARS = 128
_BLOCK_IDS = 32  # About as much text.
_REMEMBERED_BLOCKS = 100_000

Chain = Sequence[int]


def chain_of(request: ModelRequest) -> Chain:
    """One hash for each full block of the prompt, the first block first.

    Two requests share as many blocks as their chains have equal hashes from the start. The tools
    come first, as they precede the messages in a prompt.
    """
    prompt: str | Sequence[int] = request.prompt_token_ids or _text(request)
    size = _BLOCK_IDS if request.prompt_token_ids else BLOCK_CHARS
    # The same text has other keys and values under another adapter or template.
    last = hash((request.adapter, repr(sorted(request.extra.items(), key=str))))
    chain: list[int] = []
    for start in range(0, len(prompt) - size + 1, size):
        last = hash((last, prompt[start : start + size]))
        chain.append(last)
    return chain


class Prefixes:
    """The prefixes of one replica: those `computed`, and those `pending` on a running call.

    Forgets the blocks used longest ago, ends of prompts before their beginnings.
    """

    def __init__(self, capacity: int = _REMEMBERED_BLOCKS) -> None:
        self._capacity = capacity
        self._computed: OrderedDict[int, None] = OrderedDict()
        self._pending: Counter[int] = Counter()

    def computed(self, chain: Chain) -> int:
        """How many blocks of `chain`, from its start, are in the cache."""
        # A cache that has a block has all blocks before it: bisect.
        return bisect_left(chain, True, key=lambda block: block not in self._computed)

    def known(self, chain: Chain) -> int:
        """How many blocks of `chain`, from its start, are in the cache or will be soon."""
        return bisect_left(
            chain,
            True,
            key=lambda block: block not in self._computed and block not in self._pending,
        )

    def begin(self, chain: Chain) -> None:
        """A call with this prompt has been sent."""
        self._pending.update(chain)

    def end(self, chain: Chain, computed: bool) -> None:
        """The prompt of a call that began is `computed`, or never will be."""
        for block in chain:
            self._pending[block] -= 1
            if not self._pending[block]:
                del self._pending[block]
        if computed:
            self._remember(chain)

    def forget(self) -> None:
        """The replica has lost its cache."""
        self._computed.clear()

    def _remember(self, chain: Chain) -> None:
        for block in reversed(chain):
            self._computed[block] = None
            self._computed.move_to_end(block)
        while len(self._computed) > self._capacity:
            self._computed.popitem(last=False)


def _text(request: ModelRequest) -> str:
    tools = [
        json.dumps([tool.name, tool.description, tool.parameters], sort_keys=True, default=str)
        for tool in request.tools
    ]
    return "\x00".join([*tools, *map(_turn, request.messages)])


def _turn(message: Message) -> str:
    calls = [f"{call.name}({call.arguments})" for call in message.tool_calls]
    return "\x01".join(
        [
            message.role,
            message.tool_call_id or "",
            message.content,
            *calls,
            *map(str, message.media),
        ]
    )


class FleetReplica:
    """State of a replica. Each field names the module that writes it.

    running     calls on it now; `admission`
    sent        calls sent to it so far; `admission`
    broken      the failure that suspends it, or None; `health`
    resting     runs while it is suspended after an overload, else None; `health`
    overloads   refusals since the last success; `health`
    recovery    probes it while it is broken; `health`
    leaving     None, or it gets no more calls, and this is set when none runs; `fleet`, `admission`
    """

    def __init__(self, client: ModelClient, in_flight: int | None, name: str) -> None:
        self.client = client
        self.name = name
        self.limit = ConcurrencyLimit(in_flight)
        self.prefixes = Prefixes()
        self.running = 0
        self.sent = 0
        self.broken: ModelError | None = None
        self.resting: Timer | None = None
        self.overloads = 0
        self.recovery: asyncio.Task[None] | None = None
        self.leaving: asyncio.Event | None = None

    @property
    def usable(self) -> bool:
        """True when the replica is not suspended and does not leave. It may still be full."""
        return self.broken is None and self.resting is None and self.leaving is None

    @property
    def has_room(self) -> bool:
        """True when one more call is within its limit."""
        return self.running + 1 <= self.limit.calls

    @property
    def load(self) -> tuple[int, int]:
        """Sort key, the least loaded first: running calls, then calls so far."""
        return self.running, self.sent
