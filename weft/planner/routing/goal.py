"""Goals, and lesser goals as substitutes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

RESERVED: Final = frozenset(("escalate", "provide", "give up"))
"""The possible decisions other than the name of a goal."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal: `wants` are names of values to get, or of tools to run; by default its `name`.

    Raises: `ValueError` for an empty or reserved name.
    """

    name: str
    wants: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or self.name in RESERVED:
            raise ValueError(f"{self.name!r} cannot be the name of a goal")
        object.__setattr__(self, "wants", tuple(dict.fromkeys(self.wants)) or (self.name,))


@dataclass(frozen=True, slots=True)
class RouteGoal:
    """A goal, and lesser goals to accept when no route to it is left, best first.

    `partial`: a subset of a goal's wants is a lesser goal too.
    """

    goal: Goal
    lesser: tuple[Goal, ...] = ()
    partial: bool = True

    def instead_of(self, goal: Goal, missing: frozenset[str]) -> Iterator[Goal]:
        """The substitutes for `goal` when `missing` is unreachable.

        The remaining wants of the original goal are a substitute even after a lesser goal.
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
    """The reachable rest of `goal`; None where that is nothing, or all of it."""
    rest = tuple(want for want in goal.wants if want not in missing)
    if not rest or len(rest) == len(goal.wants):
        return None
    gone = sorted(set(goal.wants) & missing)
    return Goal(f"{goal.name} without {', '.join(gone)}", rest)


def goal_of(goal: Goal | str) -> Goal:
    """`goal` as a `Goal`: a name alone is the goal of that value."""
    return Goal(goal) if isinstance(goal, str) else goal
