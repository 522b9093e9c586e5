"""Which children of a fork are made, and with how many tokens each. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.reasoning.moves import ChildSpec, Fork
from weft.reasoning.options import ThinkOptions
from weft.reasoning.thread.thread import Thread

LEAST_TOKENS: Final = 16
"""A child with fewer tokens than this could not say anything."""

HEADER_TOKENS: Final = 32
"""What a child's header and closing tag take in its parent's window, with room to spare."""


@dataclass(frozen=True, slots=True)
class ForkPlan:
    """The children that are made, each with `share` tokens for it and all below it.

    At most `limit` of them are its own, where its text has to fit into the parent's window. `notes`
    say what was left out, and why.
    """

    children: tuple[ChildSpec, ...]
    share: int
    limit: int
    notes: tuple[str, ...] = ()


def plan_fork(
    fork: Fork, thread: Thread, options: ThinkOptions, free: int, room: int | None
) -> ForkPlan | str:
    """What comes of `fork`; the reason in words when nothing does.

    `free` tokens may be granted; `room` tokens are left in the window of `thread` for what the
    children append (None: no limit). Children are left out from the last one on.
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
