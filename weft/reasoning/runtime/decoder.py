"""Writes into a thread's context, and has the model continue it."""

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
"""The tokens of closing tags and a lead-in in the window, with a margin."""


class ThreadDecoder:
    """Decodes `thread` on the tokens of `ledger`.

    `primed` is set once the first prompt is computed, or never will be. `weight` is the scheduling
    weight of its calls.
    """

    def __init__(self, tree: ThreadTree, thread: Thread, ledger: BudgetLedger) -> None:
        self._tree = tree
        self._thread = thread
        self._ledger = ledger
        self._fresh: tuple[int, ...] = ()
        self._call: DecodeCall | None = None
        self._calls = 0
        self._stops: tuple[str, ...] = ()
        self.weight = 1.0
        self.primed = asyncio.Event()

    # -- writing -----------------------------------------------------------------------------

    async def open(self, opening: Opening, base: TokenContext | None = None) -> None:
        """Begin the thread with `base`, followed by a conversation and its other parts.

        Without `base` all of it is the thread's prompt. Raises: `ModelError`.
        """
        thread = self._thread
        chat, written = await self._tree.tokens.open(opening)
        if base is None:
            if written.ids:
                thread.begin(TokenContext(chat + written.ids))
                return
            chat, opened = await self._tree.tokens.split_opened(chat)
            thread.begin(TokenContext(chat))
            if opened.ids:  # the thought is the thread's, which may have to close it
                thread.context = thread.context.plus(opened.ids, opened.text)
                self.note_forced(
                    ThreadSegment(opened.ids, opened.text, forced=True, role="written")
                )
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
            self.note_forced(ThreadSegment(written.ids, written.text, forced=True, role=role))

    def note_forced(self, segment: ThreadSegment) -> None:
        """Record `segment`, which the runtime wrote: the model's next tokens are a new output."""
        self._fresh = ()
        self._thread.note(segment)

    # -- decoding ----------------------------------------------------------------------------

    @property
    def room(self) -> int | None:
        """The tokens left in the window; the root thread reserves some for its answer."""
        return self.room_after(self._thread.context)

    def room_after(self, context: TokenContext) -> int | None:
        """The tokens left in the window after `context`; None: no limit."""
        window = self._tree.window
        if window is None:
            return None
        kept = 0
        if self._thread.depth == 0 and self._tree.grammar.lead:
            kept = min(self._tree.options.answer_tokens + LEAD_TOKENS, window // 4)
        return max(0, window - len(context) - kept)

    def grant(self, most: int | None = None) -> int:
        """Reserve tokens for the model's next output, at most `most`; 0: none are left."""
        kept = self._tree.options.kept_of_path
        limits = (self._thread.limit - self._thread.generated, self.room, most, self._path(kept))
        return self._ledger.reserve(min(limit for limit in limits if limit is not None))

    def grant_final(self) -> int:
        """Reserve tokens for the root's answer."""
        window = self._tree.window
        left = None if window is None else window - len(self._thread.context)
        limits = (self._tree.options.answer_tokens, left, self._path())
        wanted = min(limit for limit in limits if limit is not None)
        return self._ledger.reserve(wanted, final=True)

    def _path(self, kept: int = 0) -> int | None:
        """The tokens that the thread may add to the critical path, without the `kept` ones."""
        options = self._tree.options
        if options.path_tokens is None:
            return None
        return options.path_left(self._thread.path_tokens + kept)

    async def decode(
        self,
        context: NodeContext,
        granted: int,
        stops: tuple[str, ...] = (),
        schema: JsonSchema | None = None,
    ) -> ParsedOutput:
        """The model's output since the runtime last wrote something.

        Raises: `ModelError`, `ReasoningError` when the model gives no answer.
        """
        self._thread.move(ThreadState.DECODING)
        call = await self._generate(context, granted, stops, schema)
        output = await self._read(call)
        self._thread.move(ThreadState.READY)
        if output is None:
            return ParsedOutput((), "spent")
        return ParsedOutput(await self._tree.tokens.pieces(self._fresh), output.ended, output.stop)

    async def _read(self, call: DecodeCall) -> TokenOutput | None:
        """Append the output of `call` to the context; None without a completion."""
        tokens, thread, completion = self._tree.tokens, self._thread, call.completion
        if completion is None:
            self._note_lost(call)
            return None
        output = await tokens.read(completion, self._stops)
        self._note_lost(call, kept=call.latest)
        thread.context = thread.context.plus(output.ids, output.text)
        ids = completion.token_ids or output.ids
        thread.note(ThreadSegment(ids, output.text, tokens=call.latest))
        self._fresh += output.ids
        return output

    def _note_lost(self, call: DecodeCall, *, kept: int = 0) -> None:
        """Finish `call`; record its tokens, except for the `kept` ones, as lost."""
        self._call = None
        self._thread.note(ThreadSegment((), "", role="lost", tokens=call.used - kept))

    async def _generate(
        self, context: NodeContext, granted: int, stops: tuple[str, ...], schema: JsonSchema | None
    ) -> DecodeCall:
        """The ended call; it has no completion when its tokens were spent."""
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
        self._note_lost(call)
        raise ReasoningError(
            f"{tree.model.model} gave no answer: {failure}",
            node=node,
            hint=failure.hint,
            retryable=failure.retryable,
        )

    # -- counting ----------------------------------------------------------------------------

    def _pay(self, call: DecodeCall) -> None:
        """Settle the tokens of `call`, which has ended."""
        self.primed.set()
        self._ledger.settle(call.granted, call.used)
        self._thread.generated += call.used
        call.granted = 0

    async def salvage(self) -> None:
        """Keep and pay for what was streamed when the thread was cut off. Raises: `ModelError`."""
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
        self._note_lost(call, kept=call.latest)
        thread.context = thread.context.plus(ids, text)
        thread.note(ThreadSegment(ids, text, role="cut off", tokens=call.latest))
