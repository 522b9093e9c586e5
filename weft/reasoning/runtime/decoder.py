"""Writes into a thread's context and has the model go on with it. Knows no forks."""

from __future__ import annotations

import asyncio
from typing import Final

from weft.core.errors import ReasoningError
from weft.core.ids import inside
from weft.core.values import JsonSchema
from weft.engine import NodeContext
from weft.reasoning.runtime.context import TokenContext
from weft.reasoning.runtime.moves import Opening, ParsedOutput, Parts
from weft.reasoning.runtime.thread import Thread
from weft.reasoning.runtime.token_codec import TokenOutput
from weft.reasoning.runtime.tree import DecodeCall, ThreadTree
from weft.reasoning.thought import ThreadSegment, ThreadState
from weft.reasoning.token_budget import BudgetLedger

LEAD_TOKENS: Final = 32
"""What closing tags and a lead-in take in the window, with room to spare."""


class ThreadDecoder:
    """The words of `thread`, paid from `ledger`. `primed`: its first prompt is computed, or never.

    `weight` of a call says how urgent it is among those that wait for the model.
    """

    def __init__(self, tree: ThreadTree, thread: Thread, ledger: BudgetLedger) -> None:
        self._tree = tree
        self._thread = thread
        self._purse = ledger
        self._fresh: tuple[int, ...] = ()
        self._call: DecodeCall | None = None
        self._calls = 0
        self._stops: tuple[str, ...] = ()
        self.weight = 1.0
        self.primed = asyncio.Event()

    # -- writing -----------------------------------------------------------------------------

    async def open(self, opening: Opening, base: TokenContext | None = None) -> None:
        """Begin the thread with `base`, a conversation, and what comes after it.

        Without `base` all of it is the thread's prompt. Raises: `ModelError`.
        """
        thread = self._thread
        chat, written = await self._tree.tokens.open(opening)
        if base is None:
            thread.begin(TokenContext(chat + written.ids))
            return
        if chat:
            base = base.plus(chat, "").inherited()
        thread.begin(base.plus(written.ids, written.text))
        thread.note(ThreadSegment(written.ids, written.text, forced=True, role="header"))

    async def write(self, parts: Parts, role: str) -> None:
        """Write `parts` into the context. Raises: `ModelError`."""
        if parts:
            written = await self._tree.tokens.write(parts)
            thread = self._thread
            thread.context = thread.context.plus(written.ids, written.text)
            self.went_on(ThreadSegment(written.ids, written.text, forced=True, role=role))

    def went_on(self, segment: ThreadSegment) -> None:
        """The runtime wrote `segment`: what the model writes next is a new output."""
        self._fresh = ()
        self._thread.note(segment)

    # -- decoding ----------------------------------------------------------------------------

    @property
    def room(self) -> int | None:
        """How many tokens the window has left; the root keeps some of it for its answer."""
        return self.room_after(self._thread.context)

    def room_after(self, context: TokenContext) -> int | None:
        """How many it would have left with `context` in it."""
        window = self._tree.window
        if window is None:
            return None
        kept = 0
        if self._thread.depth == 0 and self._tree.grammar.lead:
            kept = min(self._tree.options.answer_tokens + LEAD_TOKENS, window // 4)
        return max(0, window - len(context) - kept)

    def grant(self, most: int | None = None) -> int:
        """How many tokens the model may write next; 0: none."""
        kept = self._tree.options.kept_of_path
        limits = (self._thread.limit - self._thread.generated, self.room, most, self._path(kept))
        return self._purse.reserve(min(limit for limit in limits if limit is not None))

    def grant_final(self) -> int:
        """How many tokens there are for the root's answer, which some were kept for."""
        window = self._tree.window
        left = None if window is None else window - len(self._thread.context)
        limits = (self._tree.options.answer_tokens, left, self._path())
        wanted = min(limit for limit in limits if limit is not None)
        return self._purse.reserve(wanted, final=True)

    def _path(self, kept: int = 0) -> int | None:
        """How many tokens, but for the `kept` ones, the critical path has left for the thread."""
        options = self._tree.options
        if options.path_tokens is None:
            return None
        return options.path_left(self._thread.path_tokens + kept)

    async def say(
        self,
        context: NodeContext,
        granted: int,
        stops: tuple[str, ...] = (),
        schema: JsonSchema | None = None,
    ) -> ParsedOutput:
        """What the model writes next, with what it wrote since the runtime last wrote something.

        Raises: `ModelError`, `ReasoningError` when it gives no answer.
        """
        self._thread.move(ThreadState.DECODING)
        call = await self._asked(context, granted, stops, schema)
        reading = await self._read(call)
        self._thread.move(ThreadState.READY)
        if reading is None:
            return ParsedOutput((), "spent")
        return ParsedOutput(
            await self._tree.tokens.pieces(self._fresh), reading.ended, reading.stop
        )

    async def _read(self, call: DecodeCall) -> TokenOutput | None:
        """Take what `call` wrote into the context; None when it came to no completion."""
        tokens, thread, completion = self._tree.tokens, self._thread, call.completion
        if completion is None:
            self._lose(call)
            return None
        reading = await tokens.read(completion, self._stops)
        self._lose(call, kept=call.latest)
        thread.context = thread.context.plus(reading.ids, reading.text)
        ids = completion.token_ids or reading.ids
        thread.note(ThreadSegment(ids, reading.text, tokens=call.latest))
        self._fresh += reading.ids
        return reading

    def _lose(self, call: DecodeCall, *, kept: int = 0) -> None:
        """`call` is dealt with; what it cost is kept for the record, but for the `kept` tokens."""
        self._call = None
        self._thread.note(ThreadSegment((), "", role="lost", tokens=call.used - kept))

    async def _asked(
        self, context: NodeContext, granted: int, stops: tuple[str, ...], schema: JsonSchema | None
    ) -> DecodeCall:
        """The call, at its end: without a completion when it may write no more tokens."""
        tree, thread = self._tree, self._thread
        self._calls += 1
        node = inside(context.scope, f"say{self._calls}")
        seed = tree.seed(thread.id, self._calls) if thread.spec.seed is None else thread.spec.seed
        call = self._call = tree.call(thread.context, stops, granted, seed, schema)
        self._stops = stops
        call.primed = self.primed
        context.append([call.node(node, self.weight)])
        outcome = await context.outcome(node)
        self._pay(call)
        failure = outcome.failure
        if call.completion is not None or failure is None or failure.error == "BudgetExceeded":
            return call
        self._lose(call)
        raise ReasoningError(
            f"{tree.model.model} gave no answer: {failure}",
            node=node,
            hint=failure.hint,
            retryable=failure.retryable,
        )

    # -- counting ----------------------------------------------------------------------------

    def _pay(self, call: DecodeCall) -> None:
        """Pay for all that `call` generated; it has ended."""
        self.primed.set()
        self._purse.settle(call.granted, call.used)
        self._thread.generated += call.used
        call.granted = 0

    async def salvage(self) -> None:
        """The thread was cut off: keep what was streamed, and pay for it. Raises: `ModelError`."""
        call = self._call
        if call is None:
            return
        if call.granted:
            self._pay(call)
        if call.completion is not None:
            await self._read(call)
            return
        tokens, thread = self._tree.tokens, self._thread
        ids = tuple(call.streamed) or await tokens.encode(call.text)
        text = await tokens.decode(ids)
        self._lose(call, kept=call.latest)
        thread.context = thread.context.plus(ids, text)
        thread.note(ThreadSegment(ids, text, role="cut off", tokens=call.latest))
