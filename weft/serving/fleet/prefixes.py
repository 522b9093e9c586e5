"""Which prompts a replica has in its prefix cache, as far as a client can tell.

Prompts are compared block by block through chained hashes, as prefix caches do it: a block's hash
covers everything before it. Knows characters or token ids, not the server's own blocks.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Sequence

from weft.core.ports.model import ModelRequest
from weft.core.values import Message

BLOCK_CHARS = 128
_BLOCK_IDS = 32  # About as much text.
_REMEMBERED_BLOCKS = 100_000

Chain = Sequence[int]


def chain_of(request: ModelRequest) -> Chain:
    """One hash for each full block of the prompt, the first block first.

    Two requests share as many blocks as their chains have equal hashes from the start. What comes
    before the messages in a prompt, the tools, comes first here too.
    """
    prompt: str | Sequence[int] = request.prompt_token_ids or _text(request)
    size = _BLOCK_IDS if request.prompt_token_ids else BLOCK_CHARS
    # The same words have other keys and values for another adapter or template.
    last = hash((request.adapter, repr(sorted(request.extra.items(), key=str))))
    chain: list[int] = []
    for start in range(0, len(prompt) - size + 1, size):
        last = hash((last, prompt[start : start + size]))
        chain.append(last)
    return chain


class Prefixes:
    """The prefixes of one replica: those `computed`, and those `pending` on a running call.

    The blocks used longest ago are forgotten, ends of prompts before their beginnings.
    """

    def __init__(self, capacity: int = _REMEMBERED_BLOCKS) -> None:
        self._capacity = capacity
        self._computed: OrderedDict[int, None] = OrderedDict()
        self._pending: Counter[int] = Counter()

    def computed(self, chain: Chain) -> int:
        """How many blocks of `chain`, from its start, are in the cache."""
        # Whoever has a block has those before it, so that halving finds the last.
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
        """The prompt of a call that began is `computed`, or will not be any more."""
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
    return "\x01".join([message.role, message.tool_call_id or "", message.content, *calls])
