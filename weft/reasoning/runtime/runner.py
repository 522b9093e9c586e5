"""The loop of one thread: decode, classify, fork, join, until it ends."""

from __future__ import annotations

from typing import Final

from weft.core.errors import InternalError, ReasoningError, WeftError
from weft.core.events import Outcome
from weft.core.generated_text import open_thought
from weft.core.ids import NodeId, inside, item
from weft.core.values import JsonSchema
from weft.engine import Inputs, Node, NodeContext, Policy
from weft.reasoning.runtime.context import TokenContext
from weft.reasoning.runtime.decoder import ThreadDecoder
from weft.reasoning.runtime.fork_join import ForkPlan, join, plan_fork, run_all
from weft.reasoning.runtime.moves import (
    ChildSpec,
    Continue,
    ControlTag,
    ForkMove,
    Malformed,
    Move,
    Opening,
    Parts,
    ProtocolText,
    Return,
    Sync,
)
from weft.reasoning.runtime.moves import FinalAnswer as Answer
from weft.reasoning.runtime.thread import Thread
from weft.reasoning.runtime.token_codec import TAGS
from weft.reasoning.runtime.tree import ThreadTree
from weft.reasoning.thought import ThreadSegment, ThreadState
from weft.reasoning.token_budget import BudgetLedger

PRIMER_TOKENS: Final = 256
"""A new prompt of this length is computed for one child before the others are sent."""

_REFUSALS: Final = 3
_LEAST_ROOM: Final = 16
_CUT_OFF: Final = {"Cancelled", "NodeTimeout", "BudgetExceeded", "DeadlineExceeded"}
_JSON: Final = "\n\nThe answer as JSON:\n"


class ThreadRunner:
    """Runs `thread`, which begins with `base`, on the tokens of `ledger`.

    `place` is its node. The root thread has neither: it begins with the question, in its strategy's
    node, and always returns an answer.
    """

    def __init__(
        self,
        tree: ThreadTree,
        thread: Thread,
        ledger: BudgetLedger,
        base: TokenContext | None = None,
        place: NodeId | None = None,
    ) -> None:
        self.thread = thread
        self.ledger = ledger
        self.place = place
        self.decoder = ThreadDecoder(tree, thread, ledger)
        self._tree = tree
        self._base = base
        self._children: list[ThreadRunner] = []
        self._pauses = 0

    # -- the loop ----------------------------------------------------------------------------

    async def run(self, context: NodeContext) -> None:
        """Run the thread to its end, in the node of `context`.

        Raises: `ModelError`, `ReasoningError` when the model gives no answer.
        """
        self._context = context
        await self._begin()
        move = self._tree.grammar.first(self.thread)
        while not self.thread.state.ended:
            move = await self._execute(move)

    async def _execute(self, move: Move) -> Move:
        match move:
            case Continue():
                return await self._decode(move)
            case ForkMove():
                return await self._fork(move)
            case Sync(otherwise=otherwise):
                return await self._join(None) if self._children else otherwise
            case Malformed(reason=reason):
                return await self._repair(move, reason)
            case Return(text=text, cut=cut):
                await self._rewrite(cut, ())
                return await self._end(text)
            case Answer(text=text):
                return await self._end(text)

    async def _begin(self) -> None:
        tree, spec = self._tree, self.thread.spec
        if self._base is None:
            prompted = tree.tokens.special.prompted
            await self.decoder.open(tree.grammar.opening(tree.question, prompted=prompted))
            taken, window = len(self.thread.context), tree.window
            if window is not None and taken >= window:
                raise ReasoningError(
                    f"the question takes {taken:,} tokens, the model's window has {window:,}",
                    hint="shorten it, or let map-reduce read its documents piece by piece",
                )
        else:
            await self.decoder.open(Opening(spec.messages, spec.header), self._base)

    # -- decode ------------------------------------------------------------------------------

    async def _decode(self, move: Continue) -> Move:
        """Decode until a pause; the grammar classifies the output."""
        grammar, thread = self._tree.grammar, self.thread
        await self._rewrite(move.cut, move.parts)
        self._pauses += 1
        if self._pauses > 4 * self._tree.options.rounds + 16:
            return await self._exhausted("it paused too often")
        granted = self.decoder.grant(move.max_tokens)
        if not granted:
            full = self.decoder.room == 0
            return await self._exhausted("its window is full" if full else "its tokens are spent")
        output = await self.decoder.decode(self._context, granted, grammar.stops(thread))
        thread.cut = output.ended in ("length", "spent")
        if output.ended == "spent":
            return await self._exhausted("its tokens are spent")
        next_move = grammar.classify(thread, output)
        if output.ended == "length" and isinstance(next_move, (Return, Answer)):
            thread.reason = "cut off at its length"
        silent = output.ended == "end" and isinstance(next_move, Answer) and self.place is None
        if silent and open_thought(thread.text) and grammar.conclude(thread):
            return await self._exhausted("it ended within its thought")
        return next_move

    async def _rewrite(self, cut: str | None, parts: Parts) -> None:
        """Drop the last `cut` and everything after it, and write `parts`."""
        if cut is not None:
            self.thread.restart(await self._tree.tokens.back_to(self.thread.context, cut))
        await self.decoder.write(parts, "written")

    async def _repair(self, move: Malformed, reason: str) -> Move:
        """Repair the first malformed output; the second ends the thread."""
        self.thread.repaired += 1
        self._context.log(f"malformed: {reason}")
        if self.thread.repaired > 1:
            return await self._exhausted(f"malformed again: {reason}")
        return Continue(move.parts)

    # -- fork --------------------------------------------------------------------------------

    async def _fork(self, fork: ForkMove) -> Move:
        """Start the children that the limits allow, and join them unless they are detached."""
        tree, thread = self._tree, self.thread
        await self._rewrite(fork.cut, fork.parts)
        thread.move(ThreadState.FORKING)
        plan = plan_fork(fork, thread, tree.options, self.ledger.free, self.decoder.room)
        if isinstance(plan, str):
            return await self._refuse(fork, plan)
        for note in plan.notes:
            self._context.log(note)
        children = await self._child_runners(plan)
        thread.fork([child.thread for child in children])
        tree.forked(thread.depth + 1, len(children))
        self._children += children
        if not fork.detach:
            return await self._join(fork, children)
        self._context.append([child.node() for child in children])
        thread.move(ThreadState.READY)
        return Continue()

    async def _refuse(self, fork: ForkMove, reason: str) -> Move:
        thread = self.thread
        thread.move(ThreadState.READY)
        thread.refused += 1
        self._context.log(f"no fork: {reason}")
        if thread.refused > _REFUSALS:
            return await self._exhausted(f"it may fork no more: {reason}")
        return self._tree.grammar.refuse(thread, fork, reason)

    async def _child_runners(self, plan: ForkPlan) -> list[ThreadRunner]:
        """The runners of the children of `plan`, each with its share of the token budget."""
        scope = inside(self._context.scope, f"fork{self.thread.rounds + 1}")
        runners = []
        for index, spec in enumerate(plan.children):
            place = item(scope, index)
            limit = plan.limit if spec.max_tokens is None else min(plan.limit, spec.max_tokens)
            thread = self._tree.thread(place, spec, self.thread.depth + 1, limit)
            ledger = self.ledger.share(plan.share)
            base = await self._inherited(spec)
            runners.append(ThreadRunner(self._tree, thread, ledger, base, place))
        return runners

    async def _inherited(self, spec: ChildSpec) -> TokenContext:
        if spec.inherit == "none":
            return TokenContext(())
        context = self.thread.context
        if spec.until:
            context = await self._tree.tokens.up_to(context, spec.until)
        return (context if spec.inherit == "full" else context.cut(0, "")).inherited()

    # -- a child -----------------------------------------------------------------------------

    def node(self) -> Node:
        """The node of a child. It does not fail: the thread's state holds the error."""
        assert self.place is not None
        policy = Policy(timeout_s=self.thread.spec.timeout_s, default=None)
        return Node(self.place, self._work, policy=policy, kind="thread", recallable=False)

    async def _work(self, context: NodeContext, _: Inputs) -> None:
        context.log(f"{self.thread.role} {self.thread.key}")
        try:
            await self.run(context)
        except InternalError:
            raise
        except WeftError as error:
            self.thread.move(ThreadState.FAILED, str(error))

    async def reap(self, outcome: Outcome) -> None:
        """Settle an ended child: keep what it wrote, and close open tags and children."""
        thread, failure = self.thread, outcome.failure
        if not thread.context.all_ids and self._base is not None:
            await self._begin()  # the node never started
        while self._children:
            await self._children[0].reap(outcome)
            self._close(self._children[0])
        thread.joined()
        await self.decoder.salvage()
        if not thread.state.ended:
            cut = failure is not None and failure.error in _CUT_OFF
            state = ThreadState.CANCELLED if cut else ThreadState.FAILED
            thread.move(state, outcome.status if failure is None else failure.message)
        await self.decoder.write(self._tree.grammar.close(thread), "close")

    def _close(self, child: ThreadRunner) -> None:
        """Take back the unspent tokens of `child`, which is reaped."""
        self.ledger.close(child.ledger)
        self._children.remove(child)

    # -- join --------------------------------------------------------------------------------

    async def _join(self, fork: ForkMove | None, begun: list[ThreadRunner] | None = None) -> Move:
        """Wait for all open children, start those of `begun`, and join."""
        thread = self.thread
        thread.move(ThreadState.WAITING)
        await self._wait(fork, begun or [])
        thread.move(ThreadState.JOINING)
        children = thread.joined()
        thread.room = self.decoder.room
        joined = self._tree.grammar.join(thread, children)
        made = await join(self._tree.tokens, thread, children, joined, exact=self._tree.exact)
        thread.move(ThreadState.READY)
        room = self.decoder.room_after(made.context)
        if room is not None and room < _LEAST_ROOM:
            return await self._exhausted("its window has no room for what its children wrote")
        thread.restart(made.context)
        self.decoder.note_forced(
            ThreadSegment(made.added.ids, made.added.text, forced=True, role="join")
        )
        self.decoder.weight = 2.0 * self._tree.options.depth + 3
        self._tree.joined(made)
        return joined.then

    async def _wait(self, fork: ForkMove | None, begun: list[ThreadRunner]) -> None:
        """Wait for the end of all children, and reap them in declared order."""
        context = self._context
        fresh = self.thread.generated == 0 and len(self.thread.context) >= PRIMER_TOKENS
        primed = begun[0].decoder.primed if fresh and len(begun) > 1 else None
        enough = None if fork is None else fork.enough
        nodes = [child.node() for child in begun]
        ended = dict(await run_all(context, nodes, primed=primed, enough=enough)) if nodes else {}
        while self._children:
            child = self._children[0]
            assert child.place is not None
            await child.reap(ended.get(child.place) or await context.outcome(child.place))
            self._close(child)

    # -- the end -----------------------------------------------------------------------------

    async def _end(self, text: str) -> Move:
        """End the thread with the result `text`, or with JSON where a schema asks for it."""
        await self._cancel_children()
        schema = self._tree.question.schema
        if self.place is None and schema is not None:
            await self.decoder.write((ProtocolText(_JSON),), "conclude")
            text = await self._final_answer(schema) or text
        self.thread.result = text
        self.thread.move(ThreadState.DONE)
        return Return(text)

    async def _exhausted(self, reason: str) -> Move:
        """End an exhausted thread: the root has to answer, a child ends without a result."""
        if self.place is not None:
            full = self.decoder.room == 0
            await self._cancel_children()
            self.thread.move(ThreadState.CONTEXT_FULL if full else ThreadState.FAILED, reason)
            return Return()
        self._context.log(f"it has to answer now: {reason}")
        await self._cancel_children()
        best = self._tree.grammar.answer(self.thread)
        last = self._tree.grammar.conclude(self.thread)
        closes = any(isinstance(part, ControlTag) and part.text in TAGS for part in last)
        if last and not closes:
            last = (*await self._tree.tokens.closing(self.thread.text), *last)
        await self.decoder.write(last, "conclude")
        try:
            answer = await self._final_answer(self._tree.question.schema) if last else ""
        except ReasoningError as error:
            if not best:
                raise
            self._context.log(f"its last words are missing: {error}")
            answer = ""
            self.thread.move(ThreadState.READY)
        self.thread.result = answer or best
        self.thread.cut = self.thread.cut or (bool(last) and not answer)
        self.thread.move(ThreadState.DONE, reason)
        return Return(self.thread.result)

    async def _final_answer(self, schema: JsonSchema | None) -> str:
        """The root's final answer; empty when no token is left for it."""
        granted = self.decoder.grant_final()
        if not granted:
            return ""
        output = await self.decoder.decode(self._context, granted, schema=schema)
        self.thread.cut = output.ended in ("length", "spent")
        return "".join(piece for piece in output.pieces if isinstance(piece, str)).strip()

    async def _cancel_children(self) -> None:
        """Cancel the children that will not be joined; they stay in the record."""
        for child in self._children:
            assert child.place is not None
            self._context.cancel(child.place, "nobody waits for it")
        await self._wait(None, [])
        self.thread.joined()
