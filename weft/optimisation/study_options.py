"""What a study is for and what it may take: read from arguments, and from its record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from weft.core.budget import Budget
from weft.core.errors import InputError
from weft.evaluation.case import SHARES
from weft.optimisation.goal import StudyGoal
from weft.optimisation.objectives import COST, LATENCY, QUALITY, Objective, Outcomes, cost_of
from weft.workflow.document.spec.fields import parse_duration, parse_tokens

GoalName = Literal["quality", "latency", "cost"]
CALLS: Final = 5_000
"""Model calls of a study without a budget of them."""
CALLS_PER_CASE: Final = 100
_GOALS: Final = {"quality": QUALITY, "latency": LATENCY, "cost": COST}
_LIMITS: Final[Mapping[str, Objective]] = {
    "p95_s": LATENCY,
    "mean_s": Objective("latency", 0.1),
    "cost_usd": COST,
}
_PART: Final = re.compile(r"\s*([0-9][0-9_,]*(?:\.[0-9]+)?)\s*([a-z$]*)\s*")
_HINT: Final = "a number of model calls, or such as 2usd, 500calls, 20000tok, 1h"


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """Everything of a study but workflow, data and metric; `plain` is JSON data for its record.

    `limits`: tokens, seconds and money; `calls`: model calls. `keep`: see `keep_of`.
    """

    goal: GoalName = "quality"
    keep: Mapping[str, float] = field(default_factory=dict)
    calls: int = CALLS
    tokens: int | None = None
    money: float | None = None
    seconds: float | None = None
    shares: tuple[int, ...] = SHARES
    seed: int = 0
    slots: int = 16
    workers: int | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    calls_per_case: int = CALLS_PER_CASE
    proposer_model: str | None = None
    proposers: tuple[str | Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.goal not in _GOALS:
            raise InputError(f"there is no goal {self.goal!r}", hint=", ".join(_GOALS))
        for name in self.keep:
            if name not in (*_GOALS, *_LIMITS):
                hint = f"there are: {', '.join((*_GOALS, *_LIMITS))}"
                raise InputError(f"`keep` has no figure {name!r}", hint=hint)
            if not self.keep[name] >= 0:
                raise InputError(f"`keep`: {name} is {self.keep[name]}", hint="at least 0")
        for name in ("slots", "calls_per_case", "calls"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}", hint="at least 1")

    @property
    def budget(self) -> Budget:
        """The limits besides that of calls."""
        return Budget(self.tokens, self.seconds, self.money)

    def goal_for(self, baseline: Outcomes) -> StudyGoal:
        """The goal, with limits in shares of the figures of `baseline`.

        Where the baseline is beyond a limit, it may not get any worse. Where it costs no money,
        cost is counted in tokens.
        """
        goals = {**_GOALS, "cost": cost_of(baseline)}
        kept: dict[str, Objective] = {}
        if self.goal != "quality":
            kept["quality"] = QUALITY
        for name, value in self.keep.items():
            objective = goals.get(name) or _LIMITS[name]
            margin = value
            if name in _LIMITS:
                now = abs(objective.figure(baseline))
                margin = max(0.0, value / now - 1) if now else float("inf")
            kept[objective.name] = replace(objective, margin=margin)
        kept.pop(self.goal, None)
        return StudyGoal(goals[self.goal], tuple(kept.values()))


def parse_budget(given: object) -> dict[str, Any]:
    """The limits in a number of calls, a text, or a mapping, by the names of `StudyOptions`.

    Raises: `InputError`.
    """
    if given is None:
        return {}
    if isinstance(given, Budget):
        found = {"tokens": given.tokens, "money": given.money, "seconds": given.seconds}
        return {name: value for name, value in found.items() if value is not None}
    if isinstance(given, int) and not isinstance(given, bool):
        return {"calls": given}
    if isinstance(given, Mapping):
        unknown = given.keys() - {"calls", "tokens", "money", "seconds"}
        if unknown:
            raise InputError(f"a budget has no {', '.join(map(str, unknown))}", hint=_HINT)
        return dict(given)
    found = {}
    for part in str(given).split(","):
        found.update([_limit(part)])
    return found


def _limit(text: str) -> tuple[str, Any]:
    match = _PART.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is no budget", hint=_HINT)
    number, unit = match[1].replace("_", ""), match[2]
    if unit in ("", "call", "calls"):
        return "calls", int(float(number))
    if unit in ("usd", "$"):
        return "money", float(number)
    try:
        if unit.endswith("tok"):
            return "tokens", parse_tokens(number + unit)
        return "seconds", parse_duration(number + unit)
    except ValueError as error:
        raise InputError(f"{text!r} is no budget: {error}", hint=_HINT) from error


def more_limits(options: StudyOptions, given: object) -> dict[str, Any]:
    """What a study with these options is given besides: limits as `parse_budget` reads them.

    Raises: `InputError` for nothing, and for a limit that the study does not have.
    """
    found = parse_budget(given)
    for name, value in found.items():
        if getattr(options, name) is None:
            hint = "more calls, or a new study"
            raise InputError(f"the study has no limit of {name} that could be raised", hint=hint)
        if not value > 0:
            raise InputError(f"{value} more {name} is nothing", hint=_HINT)
    if not found:
        raise InputError("nothing more is given", hint=_HINT)
    return found


def extended_options(
    options: StudyOptions, extensions: Sequence[Mapping[str, Any]]
) -> StudyOptions:
    """The options with what the study was given since it began."""
    for each in extensions:
        more = {name: getattr(options, name) + value for name, value in each.items()}
        options = replace(options, **more)
    return options


def plain_options(options: StudyOptions) -> dict[str, Any]:
    """The options as JSON data."""
    names = StudyOptions.__dataclass_fields__
    found = {name: getattr(options, name) for name in names}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in found.items()
    }


def recorded_options(data: Mapping[str, Any]) -> StudyOptions:
    """The options in recorded data."""
    known = {
        name: value for name, value in data.items() if name in StudyOptions.__dataclass_fields__
    }
    lists: Sequence[str] = ("shares", "proposers")
    made: dict[str, Any] = {k: tuple(v) if k in lists else v for k, v in known.items()}
    return StudyOptions(**made)
