"""Fork and join: the choice of children, the wait for them, and the parent's new context."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from weft.core.errors import Cancelled
from weft.core.events import Outcome
from weft.core.ids import NodeId
from weft.engine import Node, NodeContext
from weft.reasoning.options import ThinkOptions
from weft.reasoning.runtime.context import TokenContext
from weft.reasoning.runtime.grammar import (
    AppendJoin,
    JoinMove,
    NewRootJoin,
    ReplaceJoin,
    SpliceJoin,
)
from weft.reasoning.runtime.moves import ChildSpec, ForkMove, Part, Parts
from weft.reasoning.runtime.thread import Thread
from weft.reasoning.runtime.token_codec import EncodedParts, TokenCodec

LEAST_TOKENS: Final = 16
"""The least useful number of tokens for a child."""

HEADER_TOKENS: Final = 32
"""The tokens of a child's header and closing tag in its parent's window, with a margin."""


@dataclass(frozen=True, slots=True)
class ForkPlan:
    """The children of a fork, each with `share` tokens for it and its descendants.

    A child may write `limit` tokens itself, so that its text fits into the parent's window. `notes`
    list the omissions with reasons.
    """

    children: tuple[ChildSpec, ...]
    share: int
    limit: int
    notes: tuple[str, ...] = ()


def plan_fork(
    fork: ForkMove, thread: Thread, options: ThinkOptions, free: int, room: int | None
) -> ForkPlan | str:
    """The plan for `fork`, or the reason to refuse it.

    `free` tokens may be granted; `room` tokens are left in the window of `thread` for the text of
    the children (None: no limit). Children are omitted from the last one on.
    """
    if thread.depth >= options.depth:
        return f"forks nest at most {options.depth} deep"
    if thread.rounds >= options.rounds:
        return f"a thread forks at most {options.rounds} times"
    notes: list[str] = []
    children = _once(fork.children, notes)
    children = _first(children, options.width, f"at most {options.width} side by side", notes)
    if not children:
        return "the fork has no children"
    affordable = free // LEAST_TOKENS - fork.detach
    children = _first(children, max(0, affordable), f"{free} tokens are left", notes)
    limit = options.max_tokens
    if room is not None and fork.appends:
        fitting = room // (LEAST_TOKENS + HEADER_TOKENS)
        children = _first(children, max(0, fitting), f"{room} tokens are left of the window", notes)
        limit = min(limit, room // max(1, len(children)) - HEADER_TOKENS)
    if not children:
        return "; ".join(notes)
    return ForkPlan(children, free // (len(children) + fork.detach), limit, tuple(notes))


def _once(children: tuple[ChildSpec, ...], notes: list[str]) -> tuple[ChildSpec, ...]:
    """The first child of each key."""
    first = {child.key: child for child in reversed(children)}
    kept = tuple(child for child in children if first[child.key] is child)
    if len(kept) < len(children):
        notes.append(f"{len(children) - len(kept)} children left out: their keys are taken")
    return kept


def _first(
    children: tuple[ChildSpec, ...], most: int, why: str, notes: list[str]
) -> tuple[ChildSpec, ...]:
    if len(children) > most:
        left_out = ", ".join(child.key for child in children[most:])
        notes.append(f"children left out: {left_out}: {why}")
    return children[:most]


async def run_all(
    context: NodeContext,
    nodes: Sequence[Node],
    *,
    primed: asyncio.Event | None = None,
    enough: int | None = None,
) -> Mapping[NodeId, Outcome]:
    """Append `nodes`, wait until all have ended, and return their outcomes.

    `primed`: the other nodes are appended once the first has set it, or has ended. `enough`: when
    so many have ended the others are cancelled, or not started.
    """
    why = f"{enough} of {len(nodes)} threads are enough"
    never = Outcome("cancelled", failure=Cancelled(why).failure(), attempts=0)
    outcomes = {node.id: never for node in nodes}
    waiting: set[NodeId] = set()
    ended: set[NodeId] = set()

    def begin(some: Sequence[Node]) -> None:
        context.append(some)
        for node in some:
            waiting.add(node.id)
            group.create_task(watch(node.id))

    async def watch(node: NodeId) -> None:
        outcomes[node] = await context.outcome(node)
        waiting.discard(node)
        ended.add(node)
        if primed is not None:
            primed.set()
        if len(ended) == enough:
            for other in waiting:
                context.cancel(other, why)

    async with asyncio.TaskGroup() as group:
        if primed is None:
            begin(nodes)
        else:
            begin(nodes[:1])
            await primed.wait()
            if enough is None or len(ended) < enough:
                begin(nodes[1:])
    return outcomes


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The parent's new `context`, which ends with `added`.

    `again`: tokens in it that are computed a second time. `flat`: paths that should not see one
    another are in sequence.
    """

    context: TokenContext
    added: EncodedParts
    again: int = 0
    flat: bool = False


async def join(
    tokens: TokenCodec, parent: Thread, children: Sequence[Thread], joined: JoinMove, *, exact: bool
) -> JoinResult:
    """Join `children` to `parent`; `exact`: the model places tokens. Raises: `ModelError`."""
    old = parent.context
    computed = [old.all_ids, *(child.context.all_ids for child in children)]
    match joined:
        case SpliceJoin(children=paths, tail=tail):
            if exact and all(path.context.prompt == old.all_ids for path in paths):
                return await _spliced(tokens, old, paths, tail)
            ids = tuple[Part, ...](path.context.ids for path in paths)
            made = await _appended(tokens, old, (*ids, *tail), computed)
            return JoinResult(made.context, made.added, made.again, flat=True)
        case AppendJoin(parts=parts):
            return await _appended(tokens, old, parts, computed)
        case ReplaceJoin(since=since, parts=parts):
            before = await tokens.back_to(old, since)
            return await _appended(tokens, before, parts, computed)
        case NewRootJoin(opening=opening):
            chat, added = await tokens.open(opening, generated=True)
            written = sum(len(child.body) for child in children) if opening.messages else 0
            if not added.ids:
                chat, added = await tokens.split_opened(chat)
            base = TokenContext(chat)
            again = min(written, len(chat)) + _again(base, added, computed)
            return JoinResult(base.plus(added.ids, added.text), added, again)


async def _appended(
    tokens: TokenCodec, base: TokenContext, parts: Parts, computed: Sequence[tuple[int, ...]]
) -> JoinResult:
    added = await tokens.write(parts)
    return JoinResult(base.plus(added.ids, added.text), added, _again(base, added, computed))


async def _spliced(
    tokens: TokenCodec, base: TokenContext, paths: Sequence[Thread], tail: Parts
) -> JoinResult:
    added = await tokens.write(tail)
    branches = [path.context for path in paths]
    context = base.spliced(branches, added.ids, added.text)
    written = (*chain.from_iterable(branch.ids for branch in branches), *added.ids)
    return JoinResult(context, EncodedParts(written, context.text[len(base.text) :], ()))


def _again(base: TokenContext, added: EncodedParts, computed: Sequence[tuple[int, ...]]) -> int:
    """The number of tokens of `added` by other threads beyond every computed prefix."""
    ids = base.all_ids + added.ids
    cached = max(_common(ids, other) for other in computed)
    again = 0
    start = len(base)
    for length, own in added.runs:
        if not own:
            again += max(0, start + length - max(start, cached))
        start += length
    return again


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """The length of the common prefix."""
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
