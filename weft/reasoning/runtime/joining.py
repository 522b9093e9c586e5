"""From what a grammar says of a join to the parent's next context. Asks no model for an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.reasoning.grammar import Append, Joined, NewRoot, Replace, Splice
from weft.reasoning.parts import Part, Parts
from weft.reasoning.thread.context import Context
from weft.reasoning.thread.thread import Thread
from weft.reasoning.thread.tokens import Tokens, Written


@dataclass(frozen=True, slots=True)
class Join:
    """The parent's next `context`, in which `added` is new.

    `again`: tokens in it that were computed before, and are computed once more. `flat`: paths that
    should not see one another follow one another.
    """

    context: Context
    added: Written
    again: int = 0
    flat: bool = False


async def join(
    tokens: Tokens,
    parent: Thread,
    children: Sequence[Thread],
    joined: Joined,
    *,
    exact: bool,
) -> Join:
    """The join of `children` to `parent`; `exact`: tokens can be placed. Raises: `ModelError`."""
    old = parent.context
    computed = [old.all_ids, *(child.context.all_ids for child in children)]
    match joined:
        case Splice(children=paths, tail=tail):
            if exact and all(path.context.prompt == old.all_ids for path in paths):
                return await _spliced(tokens, old, paths, tail)
            ids = tuple[Part, ...](path.context.ids for path in paths)
            made = await _appended(tokens, old, (*ids, *tail), computed)
            return Join(made.context, made.added, made.again, flat=True)
        case Append(parts=parts):
            return await _appended(tokens, old, parts, computed)
        case Replace(since=since, parts=parts):
            before = await tokens.back_to(old, since)
            return await _appended(tokens, before, parts, computed)
        case NewRoot(opening=opening):
            chat, added = await tokens.open(opening, generated=True)
            written = sum(len(child.body) for child in children) if opening.messages else 0
            base = Context(chat)
            again = min(written, len(chat)) + _again(base, added, computed)
            return Join(base.plus(added.ids, added.text), added, again)


async def _appended(
    tokens: Tokens, base: Context, parts: Parts, computed: Sequence[tuple[int, ...]]
) -> Join:
    added = await tokens.write(parts)
    return Join(base.plus(added.ids, added.text), added, _again(base, added, computed))


async def _spliced(tokens: Tokens, base: Context, paths: Sequence[Thread], tail: Parts) -> Join:
    added = await tokens.write(tail)
    branches = [path.context for path in paths]
    context = base.spliced(branches, added.ids, added.text)
    written = sum((branch.ids for branch in branches), ()) + added.ids
    return Join(context, Written(written, context.text[len(base.text) :], ()))


def _again(base: Context, added: Written, computed: Sequence[tuple[int, ...]]) -> int:
    """How many tokens of `added` that others wrote lie beyond every prefix that was computed."""
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
    """How long the common beginning is."""
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
