"""What is wanted, and what would do instead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

RESERVED: Final = frozenset(("escalate", "provide", "give up"))
"""What a decision may say besides the name of a goal."""


@dataclass(frozen=True, slots=True)
class Goal:
    """All of `wants`: names of things to be had, or of tools to be run. No wants: `name` itself.

    Raises: `ValueError` for a name that is empty or has a meaning of its own.
    """

    name: str
    wants: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or self.name in RESERVED:
            raise ValueError(f"{self.name!r} cannot be the name of a goal")
        object.__setattr__(self, "wants", tuple(dict.fromkeys(self.wants)) or (self.name,))


@dataclass(frozen=True, slots=True)
class RouteGoal:
    """A goal, and lesser ones that would do when no way is left to it, best first.

    Where a goal has several wants, having fewer of them is a lesser goal too if `partial`.
    """

    goal: Goal
    lesser: tuple[Goal, ...] = ()
    partial: bool = True

    def instead_of(self, goal: Goal, missing: frozenset[str]) -> Iterator[Goal]:
        """What may be settled for in the place of `goal` when `missing` cannot be had.

        The rest of what was wanted in the first place is still there after a lesser goal.
        """
        if goal in self.lesser:
            yield from self.lesser[self.lesser.index(goal) + 1 :]
        else:
            yield from self.lesser
        rests: dict[tuple[str, ...], Goal] = {}
        for each in (goal, self.goal) if self.partial else ():
            rest = _without(missing, each)
            if rest is not None:
                rests.setdefault(rest.wants, rest)
        yield from rests.values()


def _without(missing: frozenset[str], goal: Goal) -> Goal | None:
    """What is left of `goal`; None where that is nothing, or all of it."""
    rest = tuple(want for want in goal.wants if want not in missing)
    if not rest or len(rest) == len(goal.wants):
        return None
    gone = sorted(set(goal.wants) & missing)
    return Goal(f"{goal.name} without {', '.join(gone)}", rest)


def goal_of(goal: Goal | str) -> Goal:
    """A name alone is the goal of having what it names."""
    return Goal(goal) if isinstance(goal, str) else goal
