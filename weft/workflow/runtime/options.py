"""Settings of a run that differ from its document, and their recorded form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypedDict, get_args

from pydantic import ValidationError

from weft.core.budget import Budget
from weft.core.errors import BuildError
from weft.core.events import Listener
from weft.core.keywords import expect
from weft.core.ports import Clock, ModelClient, ResultStore, ToolRunner
from weft.core.ports.journal import Journal
from weft.core.questions import PendingQuestion
from weft.durability.calls import Confirmation
from weft.engine import BudgetLimit, RunOptions
from weft.workflow.compile.policy import limit_of
from weft.workflow.document.spec.defects import first_defect
from weft.workflow.document.spec.fields import parse_duration
from weft.workflow.document.spec.settings import Durability, LimitSpec, RunSpec
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.models.factory import ModelSource

_DURABILITIES: Final = get_args(Durability)
_CHECKED: Final = ("concurrency", "max_nodes", "deadline", "seed", "durability", "journal_wait")
QuestionPolicy = Literal["pause", "wait"]
_POLICIES: Final = get_args(QuestionPolicy)
AnswerFunction = Callable[[PendingQuestion], Any]
"""Answers a question, or returns an awaitable of the answer; None: nobody answers it here."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Settings of a run; None leaves a setting to the document.

    listeners     called with every event, in order
    models        clients by name, in place of declared ones; or a source of all of them. Their
                  owner closes them
    tools         a tool runner whose tools replace declared ones of the same names
    clock         the clock
    store         results stored between runs; by default in the user's cache folder, but none with
                  substituted models or tools, whose results must not be reused
    concurrency   the most nodes that run at once; `limits`: of a model or tool,
                  a number of slots or a mapping as in a file
    max_nodes     the most nodes in all; a node that expands into more fails
    deadline      when the run ends with what it has: seconds, or a text such as 5m
    budget        what the run may spend; a `BudgetLimit`, or a mapping as in a file, also says what
                  happens then
    seed          of retries, and of samples without one
    run           the run's id; by default one that its journal does not have
    journal       where the run is recorded; by default in the user's own journal, but nowhere with
                  substituted models or tools. Its owner closes it
    durability    when records are in the journal: none, exit, async, sync
    journal_wait  how long to wait for a journal that is temporarily not writable: as `deadline`
    notes         further plain data in the record, for the process that resumes the run
    answers       answers to questions, by the node that asks, or the one around an approval
    answer        a function that answers a `PendingQuestion`, sync or async; None: it cannot
    failover_queue  a queue of the journal whose workers continue the run if this process dies
    questions     pause: leave the run where only an unanswered question can continue it; its status
                  is `asking`. wait: stay until somebody answers, as `FlowRun.answer` or another
                  process does. `flow.run`, `flow.resume` and `weft.ask` pause, `flow.start` waits

    Raises: `BuildError` for a wrong value, such as an unknown durability.
    """

    listeners: Iterable[Listener] = ()
    models: Mapping[str, ModelClient] | ModelSource | None = None
    tools: ToolRunner | None = None
    clock: Clock | None = None
    store: ResultStore | None = None
    concurrency: int | None = None
    limits: Mapping[str, int | Mapping[str, int]] = field(default_factory=dict)
    max_nodes: int | None = None
    deadline: float | str | None = None
    budget: Budget | BudgetLimit | Mapping[str, object] | None = None
    seed: int | None = None
    run: str | None = None
    journal: Journal | str | Path | None = None
    durability: Durability | None = None
    journal_wait: float | str | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)
    answer: AnswerFunction | None = None
    failover_queue: str | None = None
    questions: QuestionPolicy | None = None

    def __post_init__(self) -> None:
        given = {name: value for name in _CHECKED if (value := getattr(self, name)) is not None}
        given = {**given, **({"limits": self.limits} if self.limits != {} else {})}
        if self.questions not in (None, *_POLICIES):
            hint = f"there are: {', '.join(_POLICIES)}"
            raise BuildError(f"`questions` cannot be {self.questions!r}", hint=hint)
        if isinstance(self.budget, Mapping):
            given["budget"] = dict(self.budget)
        if given:
            spec = _checked(given)
            for name in ("deadline", "journal_wait"):
                if name in given:
                    object.__setattr__(self, name, getattr(spec, name))
            if "budget" in given:
                object.__setattr__(self, "budget", limit_of(spec.budget))
        _check_objects(self)

    def given(self) -> dict[str, Any]:
        """The settings, by name, that are not left to the document."""
        values = {each.name: getattr(self, each.name) for each in fields(RunSettings)}
        return {name: value for name, value in values.items() if value not in (None, (), {})}

    @property
    def substitutes(self) -> bool:
        """True with other models or tools than the declared ones, such as fakes."""
        return isinstance(self.models, Mapping) or self.tools is not None

    def durability_of(self, unit: Unit) -> Durability:
        """The run's durability."""
        if self.journal is None and (self.substitutes or has_fakes(unit)):
            return "none"
        return self.durability or unit.document.run.durability

    @property
    def limit(self) -> BudgetLimit | None:
        """The budget, with what happens when it is spent."""
        assert not isinstance(self.budget, Mapping), "`__post_init__` has converted it"
        return BudgetLimit(self.budget) if isinstance(self.budget, Budget) else self.budget

    def limits_of(self, unit: Unit) -> dict[str, LimitSpec]:
        """The limits by name: these over those of the document."""
        own = _checked({"limits": dict(self.limits)}).limits if self.limits else {}
        return {**unit.document.run.limits, **own}

    def options(self, unit: Unit) -> RunOptions:
        """The engine's options: these settings over those of the document."""
        spec = unit.document.run
        deadline_s = spec.deadline if self.deadline is None else parse_duration(self.deadline)
        return RunOptions(
            self.concurrency or spec.concurrency,
            {name: each.slots for name, each in self.limits_of(unit).items() if each.slots},
            deadline_s,
            self.limit or limit_of(spec.budget),
            spec.seed if self.seed is None else self.seed,
            max_nodes=self.max_nodes or spec.max_nodes,
        )

    def recorded(self) -> dict[str, Any]:
        """The settings as plain data for a resumed run; see `settings_of`."""
        values: dict[str, Any] = {
            "concurrency": self.concurrency,
            "limits": dict(self.limits) or None,
            "max_nodes": self.max_nodes,
            "deadline_s": self.deadline,
            "budget": None if self.limit is None else self.limit.as_data,
            "seed": self.seed,
            "durability": self.durability,
            "journal_wait_s": self.journal_wait,
        }
        return {**self.notes, **{key: value for key, value in values.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class AskSettings(RunSettings):
    """Settings of a question's run; its models and tools are arguments of `ask` and `think`.

    resume        a run of the same question, to continue: finished nodes do not run again
    confirmed     a person's decisions about calls of that run whose end is unknown, by node: as in
                  `Flow.resume`

    Raises: also `BuildError` for `confirmed` without `resume`, and for a `failover_queue`.
    """

    resume: str | None = None
    confirmed: Mapping[str, Confirmation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # not `super()`: a dataclass with slots is another class than the one that is defined here
        RunSettings.__post_init__(self)
        if self.confirmed and self.resume is None:
            raise BuildError("`confirmed` is about calls of a run", hint="name it: resume=RUN")
        if self.failover_queue is not None:
            raise BuildError("a question has no queue", hint="make it a workflow, and submit that")


def has_fakes(unit: Unit) -> bool:
    """Whether a client of the workflow, or one that it asks, is a fake for tests."""
    return any(
        getattr(client, "fake", False)
        for included in unit.everything()
        for client in included.clients.values()
    )


def settings_of(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, by name, from `RunSettings.recorded`; values of a wrong type are ignored."""
    kinds: dict[str, type | tuple[type, ...]] = {
        "concurrency": int,
        "max_nodes": int,
        "deadline_s": (int, float),
        "journal_wait_s": (int, float),
        "seed": int,
        "durability": str,
    }
    values = {key: recorded.get(key) for key in kinds}
    given = {
        key.removesuffix("_s"): value
        for key, value in values.items()
        if isinstance(value, kinds[key])
    }
    if given.get("durability") not in _DURABILITIES:
        given.pop("durability", None)
    limits, budget = recorded.get("limits"), recorded.get("budget")
    if isinstance(limits, Mapping):
        given["limits"] = dict(limits)
    if isinstance(budget, Mapping):
        spent = Budget(budget.get("tokens"), budget.get("seconds"), budget.get("money"))
        given["budget"] = BudgetLimit(spent, budget.get("on_reached", "stop"))
    return given


def _checked(given: Mapping[str, Any]) -> RunSpec:
    """Settings checked as in a workflow file. Raises: `BuildError`."""
    expect(given.get("limits", {}), Mapping, "`limits` maps names to numbers", '{"small": 4}')
    document = {"run": dict(given)}
    try:
        return RunSpec.model_validate(document["run"])
    except ValidationError as error:
        defect = first_defect(error, document, ("run",))
        raise BuildError(defect.message, hint=defect.hint) from None


def _check_objects(settings: RunSettings) -> None:
    """Raises: `BuildError` for a setting that is not the object that it should be."""
    wanted: tuple[tuple[str, str, str], ...] = (
        ("tools", "call", "a tool runner, such as weft.Toolbox([search])"),
        ("clock", "call_later", "a clock, such as weft.testing.VirtualClock()"),
        ("journal", "begin", "a path, an address, or weft.open_journal(path)"),
    )
    for name, method, hint in wanted:
        value = getattr(settings, name)
        if name == "journal" and isinstance(value, str | Path):
            continue
        if value is not None and not hasattr(value, method):
            raise BuildError(f"`{name}` is {value!r:.80}", hint=f"give {hint}")
    models = settings.models
    if not (models is None or isinstance(models, Mapping) or hasattr(models, "client")):
        hint = 'give clients by name, {"small": client}, or weft.Models()'
        raise BuildError(f"`models` is {models!r:.80}", hint=hint)
    expect(settings.run or "", str, "`run` is the id of the run, a text", 'run="nightly-7"')
    budget_kinds = (Budget, BudgetLimit, type(None))
    expect(settings.budget, budget_kinds, "`budget` is a budget", "weft.Budget(tokens=20_000)")
    expect(settings.listeners, Iterable, "`listeners` is a list", "listeners=[print]")


class FlowLimits(TypedDict, total=False):
    """Limits of a whole run; see `RunSpec`."""

    deadline: float | str
    concurrency: int
    limits: Mapping[str, int | Mapping[str, int]]
    max_nodes: int
    budget: Mapping[str, object] | Budget
    seed: int
    durability: Durability
    journal_wait: float | str


class FlowSettings(TypedDict, total=False):
    """Settings of a run that differ from the workflow; see `RunSettings`."""

    listeners: Iterable[Listener]
    models: Mapping[str, ModelClient] | ModelSource | None
    tools: ToolRunner | None
    clock: Clock | None
    store: ResultStore | None
    concurrency: int | None
    limits: Mapping[str, int | Mapping[str, int]]
    max_nodes: int | None
    deadline: float | str | None
    budget: Budget | BudgetLimit | Mapping[str, object] | None
    seed: int | None
    run: str | None
    journal: Journal | None
    durability: Durability | None
    journal_wait: float | str | None
    answers: Mapping[str, Any]
    answer: AnswerFunction | None
    failover_queue: str | None
    questions: QuestionPolicy | None
