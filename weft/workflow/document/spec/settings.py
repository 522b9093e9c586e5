"""Retry, cache, budget and run settings of a document; they enforce nothing."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, PlainSerializer, Tag
from pydantic_core import PydanticCustomError

from weft.cluster.settings import MAX_WORKERS
from weft.core.error_names import error_names
from weft.engine.graph.graph import MAX_NODES
from weft.workflow.document.spec.fields import (
    Duration,
    Name,
    SpecPart,
    Template,
    Value,
    expands,
    optional,
    optional_list,
    optional_mapping,
    shortens,
)

Positive = Annotated[int, Field(ge=1)]
PositiveDuration = Annotated[Duration, Field(gt=0)]
Durability = Literal["none", "exit", "async", "sync"]


class RetrySpec(SpecPart):
    """Repeat a node when its error may go away: a broken stream, a busy server, a timeout."""

    attempts: Positive = Field(default=3, description="How often to try, the first time included.")
    delay: Duration = Field(default=0.5, description="The wait before the second attempt.")
    factor: float = Field(default=2.0, ge=1, description="Each further wait is this much longer.")
    max_delay: Duration = Field(default=30.0, description="No wait is longer than this.")
    jitter: float = Field(
        default=0.1, ge=0, le=1, description="How much of a wait is left to chance."
    )


class BreakerSpec(SpecPart):
    """Refuse calls of what keeps failing, until a call that is tried succeeds."""

    failures: Positive = Field(default=5, description="So many failed calls open it.")
    within: PositiveDuration = Field(
        default=300.0, description="All of them within this time, whatever succeeds between them."
    )
    after: PositiveDuration = Field(
        default=60.0,
        description="Calls are refused for so long; then one call at a time is let through.",
    )
    successes: Positive = Field(
        default=3, description="So many of these close it; one that fails opens it again."
    )


class GrowSpec(SpecPart):
    """Run a map on a few items first, then on more and more, as long as the results are good."""

    first: Positive = Field(default=5, description="So many items first.")
    factor: float = Field(
        default=4.0, gt=1, description="After each step, so many times as many items are done."
    )
    accept: Template | None = optional(
        "Asked after each step but the last; the map fails when it is not true. It sees `value`, "
        "the results so far in the order of the items, and the numbers `done`, `failed`, `total`."
    )
    seed: int = Field(
        default=0, description="Which items come first: a sample, for the first rows are none."
    )


class CacheSpec(SpecPart):
    """Reuse the result of an earlier run for equal inputs."""

    ttl: Duration | None = optional("How long a result may be reused.")


class BudgetSpec(SpecPart):
    """The limits of a budget, and what happens when one is reached."""

    tokens: int | None = optional("Prompt and completion tokens together.", ge=0)
    time: Duration | None = optional("Time from the start of what is limited.")
    money: float | None = optional("US dollars.", ge=0)
    on_reached: Literal["stop", "degrade"] = Field(
        default="stop",
        description="stop: cancel what spends. degrade: nodes that spend take their `degrade` "
        "node or their default, or are left out.",
    )


class LimitSpec(SpecPart):
    """The limits of the calls of one model or tool."""

    slots: Positive | None = optional("At most so many calls at once, of this run.")
    requests_per_minute: Positive | None = optional(
        "At most so many calls in any 60 seconds, of all runs that share a journal."
    )
    tokens_per_minute: Positive | None = optional(
        "At most so many tokens in any 60 seconds, of prompts and answers; of a model."
    )


Limit = Annotated[LimitSpec, expands("slots", Positive | LimitSpec, kind=int), shortens("slots")]
"""`small: 4`, or a mapping."""


class PoolSpec(SpecPart):
    """Worker processes on nodes of a cluster."""

    labels: list[str] = optional_list(
        "Custom resources of Ray that its nodes have, all of them; without any: every node that "
        "has processors."
    )
    workers: int = Field(default=1, ge=1, le=MAX_WORKERS, description="Processes on each node.")


class RunSpec(SpecPart):
    """Limits of a whole run; the command line and Python may override them."""

    deadline: Duration | None = optional("The run ends then, with what it has.")
    concurrency: Positive | None = optional("At most so many nodes work at once.")
    limits: dict[Name, Limit] = optional_mapping(
        "At most so many calls of a model or tool at once, by its name; or a mapping."
    )
    max_nodes: Positive = Field(
        default=MAX_NODES,
        description="At most so many nodes in all; a node that expands into more fails.",
    )
    budget: BudgetSpec | None = optional("What the run may spend.")
    seed: int = Field(
        default=0, ge=0, description="Makes retries (and samples without a seed) repeatable."
    )
    durability: Durability = Field(
        default="sync",
        description="How soon the journal has what happened. sync: before anything follows from "
        "it. async: a moment later. exit: when the run ends or asks a person. none: never.",
    )
    journal_wait: Duration = Field(
        default=300.0,
        description="How long the run waits for a journal that cannot be written to for the "
        "moment. After that it is suspended, to be resumed.",
    )
    on: Literal["ray"] | None = optional("Where tools run: on a Ray cluster; else in this process.")
    address: str | None = optional(
        "HOST:PORT of the cluster; else the one that `weft cluster up` started here."
    )
    pools: dict[Name, PoolSpec] = optional_mapping(
        "Worker pools of the cluster. A tool goes to the pool that its `on` names, or that has the "
        "name of its resource, else to `default`, else it stays here. Without pools: all go to all "
        "nodes."
    )
    content: str | None = optional(
        "The content store for code and large values: a folder that all nodes share, "
        "`s3://BUCKET/PREFIX` or `postgresql://HOST/NAME`; by default a folder of this machine.",
        min_length=1,
    )
    token_file: str | None = optional(
        "The file with the token of the cluster; by default the one of `weft cluster up`.",
        min_length=1,
    )


_KEY = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$"


class ScheduleSpec(SpecPart):
    """A run at each time of a cron expression, once `weft schedule apply` has registered it."""

    cron: str = Field(description="Minute, hour, day, month, weekday: `0 7 * * 1-5`.")
    name: str | None = optional(
        "What the schedule is called in the journal; by default as the workflow.", pattern=_KEY
    )
    timezone: str = Field(
        default="UTC", description="The IANA time zone of the times, such as Europe/Berlin."
    )
    inputs: dict[Name, Value] = optional_mapping("The inputs of its runs. Plain values.")
    catch_up: Literal["one", "skip", "all"] = Field(
        default="one",
        description="Times at which no worker was there: submit the last of them, none, or all.",
    )
    priority: int = Field(default=0, description="Of its runs: higher first.")
    queue: str = Field(default="default", description="The queue of its runs.", pattern=_KEY)
    concurrency_limit: Positive | None = optional(
        "At most so many runs of one key at once, on all machines."
    )
    concurrency_key: str | None = optional(
        "What the limit is for; by default the workflow's name.", pattern=_KEY
    )


def _schedule_form(value: object) -> str:
    return SCHEDULE_FORMS[isinstance(value, list)]


SCHEDULE_FORMS = ("<schedule>", "<schedules>")
Schedules = Annotated[
    Annotated[ScheduleSpec, Tag(SCHEDULE_FORMS[0])]
    | Annotated[list[ScheduleSpec], Tag(SCHEDULE_FORMS[1])],
    Discriminator(_schedule_form),
]
"""One schedule, or a list."""


def _check_errors(given: list[str | int]) -> list[str | int]:
    try:
        return list(error_names(given))
    except ValueError as error:
        raise PydanticCustomError("retry_on", "{why}", {"why": str(error)}) from None


RetryOn = Annotated[
    list[str | int],
    BeforeValidator(
        lambda given: [given] if isinstance(given, str | int) else given,
        json_schema_input_type=str | int | list[str | int],
    ),
    AfterValidator(_check_errors),
]
"""Exceptions as `module.Class`, built-in ones bare, and HTTP statuses: one, or a list."""

Retry = Annotated[
    RetrySpec, expands("attempts", Positive | RetrySpec, kind=int), shortens("attempts")
]
"""`retry: 3`, or a mapping."""

BreakerField = Annotated[
    BreakerSpec,
    expands("failures", Positive | BreakerSpec, kind=int),
    shortens("failures"),
]
"""`breaker: 5`, or a mapping."""

Cache = Annotated[
    CacheSpec,
    BeforeValidator(
        lambda value: {} if value is True else value,
        json_schema_input_type=Literal[True] | CacheSpec,
    ),
    PlainSerializer(lambda cache: cache.model_dump(exclude_unset=True) or True),
]
"""`cache: true`, or a mapping."""


class AlternativeSpec(SpecPart):
    """A tool that may be called instead."""

    tool: str = Field(description="A name under `tools`, or `./file.py:name`.", min_length=1)
    arguments: dict[str, Value] | None = optional(
        "Its arguments, by name; else those of the node.", alias="with"
    )
    cost: float | None = optional(
        "What a call costs, in any unit; the node's own tool costs 1. The cheapest "
        "that works goes first. Without it: 2 for the first alternative, 3 for the second, ...",
        gt=0,
    )


Alternative = Annotated[AlternativeSpec, expands("tool", str | AlternativeSpec), shortens("tool")]
"""`other_tool`, or a mapping with its own arguments."""
