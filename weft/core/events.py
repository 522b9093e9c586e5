"""The events of a run, one closed union of frozen values: a run's only output.

Progress view, trace, timeline and journal read nothing else. `at_s` is seconds since the run
started. Events of one run are totally ordered by emission.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from weft.core.errors import Failure
from weft.core.ids import NodeId, RunId
from weft.core.values import Denoised, Speculated, Usage

Status = Literal["succeeded", "failed", "skipped", "cancelled"]
Via = Literal["", "cache", "default", "fallback"]
SUBSTITUTES: Final[tuple[Via, ...]] = ("default", "fallback")
"""Replacements for the result of a failed node; a cached result is an ordinary success."""
RunStatus = Literal["succeeded", "partial", "failed", "cancelled", "asking"]
"""`asking`: this process has left the run, which waits for a person. No journal records it."""
BreakerState = Literal["closed", "open", "half-open"]
JoinMode = Literal["all", "any", "quorum", "first_valid", "best_effort"]


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """The definition of a node, for drawing and scheduling it: kind, inputs, slot, join.

    `streams` are the `sources` whose items the node takes one by one. `join` is the join's mode,
    `quorum` its k; `cancels`: it cancels the branches it does not need. `attempts`: the most
    attempts. `weight` is the expected duration; `spends`: the node is charged to budgets.
    `may_fail`: its failure does not fail the run.
    """

    id: NodeId
    kind: str
    sources: tuple[NodeId, ...] = ()
    resource: str | None = None
    parent: NodeId | None = None
    streams: tuple[NodeId, ...] = ()
    join: JoinMode = "all"
    quorum: int = 1
    cancels: bool = False
    attempts: int = 1
    weight: float = 1.0
    spends: bool = False
    may_fail: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a node ended. `via` names the replacement of its own result, `failure` what went wrong.

    A node that was skipped because of a failure has that `failure`; one skipped on purpose has
    none. A node that succeeded by its own work, with a `failure`, has a partial value.
    """

    status: Status
    value: Any = None
    failure: Failure | None = None
    attempts: int = 1
    via: Via = ""

    @property
    def ok(self) -> bool:
        """True when dependents get a value."""
        return self.status == "succeeded"

    @property
    def partial(self) -> bool:
        """True when dependents get a value of which something is missing."""
        return self.ok and not self.via and self.failure is not None


@dataclass(frozen=True, slots=True)
class RunStarted:
    """`wall` is the UTC start in ISO 8601; `limits` the slots of each resource class."""

    run: RunId
    flow: str
    wall: str
    nodes: tuple[NodeInfo, ...]
    limits: Mapping[str, int]
    at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RunResumed:
    """Another process, the `part`-th (from 2), continues a run; `at_s` continues from its last.

    A `RunStarted` follows, for listeners of this part only. Nodes that had ended end again,
    `recalled`, as soon as their inputs are there, without the events of the nodes inside them. A
    reader of the earlier parts may skip all recalled events. `budget` is that of the run from now
    on, as a workflow file has it; None: none.
    """

    run: RunId
    part: int
    wall: str
    at_s: float
    budget: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class GraphGrew:
    """`parent` appended `nodes` to the running graph.

    `results`: the parent paused until those nodes are joined as `join` says, at most `width` of
    them running at once; `items` are offered to streaming edges. None: the parent continues.

    Very many nodes come in parts, each with its share of `results`; all but the last have `more`.
    Without the last, the run ended while `parent` was appending.
    """

    parent: NodeId
    nodes: tuple[NodeInfo, ...]
    at_s: float
    results: tuple[NodeId, ...] | None = None
    join: JoinMode = "all"
    quorum: int = 1
    width: int | None = None
    items: bool = False
    more: bool = False


def whole(parts: Sequence[GraphGrew]) -> GraphGrew:
    """The parts of one expansion, in order, as one event."""
    if len(parts) == 1:
        return parts[0]
    nodes = tuple([info for part in parts for info in part.nodes])
    results = tuple([result for part in parts for result in part.results or ()])
    return dataclasses.replace(parts[-1], nodes=nodes, results=results)


@dataclass(frozen=True, slots=True)
class NodeStarted:
    """Attempt `attempt` (from 1) of a node's own work began, with its slot.

    `digest` identifies the node's definition and inputs; empty where the run is not recorded,
    where an input has no stable content, and in later attempts.
    """

    node: NodeId
    attempt: int
    at_s: float
    digest: str = ""


@dataclass(frozen=True, slots=True)
class JoinDecided:
    """A join of the kind any, quorum or first valid has enough: `winners`, in the order they count.

    `node` is the waiting node: the joining one, or the one that appended the branches.
    """

    node: NodeId
    winners: tuple[NodeId, ...]
    at_s: float


@dataclass(frozen=True, slots=True)
class CacheMissed:
    """A node with a result cache looked its result up, and the store has none: it does its work.

    `key` is the digest of what the node is and what it receives, under which the store was asked.
    Nothing is told where the inputs have no stable content or the store cannot be read.
    """

    node: NodeId
    key: str
    at_s: float


@dataclass(frozen=True, slots=True)
class NodeWaiting:
    """The node's own work paused: it waits for the nodes it appended, without a slot."""

    node: NodeId
    at_s: float


@dataclass(frozen=True, slots=True)
class NodeStreamed:
    """A piece of streamed output: text, and its number of tokens."""

    node: NodeId
    text: str
    tokens: int
    at_s: float


@dataclass(frozen=True, slots=True)
class NodeLogged:
    """A line that a tool or a node logs for people."""

    node: NodeId
    text: str
    at_s: float


@dataclass(frozen=True, slots=True)
class NodeSpent:
    """Additional usage of a node since its last report.

    `recalled`: the node, and the nodes inside it, consumed it in an earlier part of the run.
    """

    node: NodeId
    usage: Usage
    at_s: float
    recalled: bool = False


@dataclass(frozen=True, slots=True)
class NodeDecoded:
    """How a model's answer was drafted, several tokens a step."""

    node: NodeId
    speculated: Speculated
    at_s: float


@dataclass(frozen=True, slots=True)
class NodeDenoised:
    """How a diffusion model filled an answer in, several tokens a step."""

    node: NodeId
    denoised: Denoised
    at_s: float


@dataclass(frozen=True, slots=True)
class NodeRepairing:
    """A model's answer did not fit its schema; the model is asked again, with the error.

    `number` counts the repairs of one attempt from 1.
    """

    node: NodeId
    number: int
    failure: Failure
    at_s: float


@dataclass(frozen=True, slots=True)
class NodeRetrying:
    """An attempt failed with a retryable error; the next one starts after `delay_s`."""

    node: NodeId
    attempt: int
    delay_s: float
    failure: Failure
    at_s: float


@dataclass(frozen=True, slots=True)
class NodeRerouted:
    """A node failed for good and `to` runs in its place.

    `instead`: its own work is over; else it continues, and other nodes do what failed.
    """

    node: NodeId
    to: NodeId
    failure: Failure
    at_s: float
    instead: bool = False


@dataclass(frozen=True, slots=True)
class HumanAsked:
    """The node waits for a person. `schema` is the JSON Schema the answer must fit.

    `recalled`: it asked in an earlier part of the run, and is still waiting. `tool`: the tool whose
    call needs an approval, with its `arguments`; empty for other questions.
    """

    node: NodeId
    question: str
    schema: Mapping[str, Any]
    at_s: float
    recalled: bool = False
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HumanAnswered:
    """A person answered `value`; the node continues. `recalled`: in an earlier part of the run."""

    node: NodeId
    at_s: float
    value: Any = None
    recalled: bool = False


@dataclass(frozen=True, slots=True)
class BreakerChanged:
    """A call of `node` has brought a circuit breaker into `state`.

    closed      calls are made
    open        calls are refused until `retry_at`, a UTC time in ISO 8601
    half-open   one call at a time is made, to see whether it succeeds

    `kind` and `name` are those of what is called, a `tool`, a `server` of tools or a `model`, as
    `workflow` declares it. Other runs of the process share the breaker: they have no event of it.
    `reason` is a sentence part, for people.
    """

    node: NodeId
    kind: Literal["tool", "server", "model"]
    name: str
    state: BreakerState
    at_s: float
    workflow: str = ""
    retry_at: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BudgetReached:
    """A budget is spent. `scope` is the node that owns it, or None for the run's."""

    scope: NodeId | None
    reason: str
    degrade: bool
    at_s: float


@dataclass(frozen=True, slots=True)
class NodeFinished:
    """The one and only end of a node.

    `recalled`: the node ended in an earlier part of the run; this part did not start it, and
    `digest` is what its `NodeStarted` would have had. `run_ended`: the node ended because the whole
    run did, before it was done. `by_name`: the node, or a node around it, was cancelled by name,
    not by the run, a join or its parent.
    """

    node: NodeId
    outcome: Outcome
    at_s: float
    recalled: bool = False
    digest: str = ""
    run_ended: bool = False
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class RunMeasured:
    """Resource usage of this process's part of the run, recorded before the run's end.

    loop_cpu_s   processor seconds of the event loop's thread
    loop_late_s  seconds in which that thread was ready and had no processor, where known
    cores        processors that this process may use
    idle         the share of the machine's processors that was unused meanwhile, where known
    loop_s       by family of nodes (`notes[*]`): the number of attempts, and the processor seconds
                 of the loop that their own code took
    cpu_s        by node: processor seconds of its code in threads
    """

    loop_cpu_s: float
    loop_late_s: float
    cores: int
    idle: float | None
    loop_s: Mapping[str, tuple[int, float]]
    cpu_s: Mapping[str, float]
    at_s: float


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The end of the run. `reasons` explains, in sentences, anything but plain success.

    `leaked` names nodes whose code did not react to its cancellation in time, `missed` those that
    failed or were cancelled by name, and whose loss the run did not survive.
    """

    status: RunStatus
    usage: Usage
    reasons: tuple[str, ...]
    at_s: float
    leaked: tuple[NodeId, ...] = ()
    missed: tuple[NodeId, ...] = ()


Event = (
    RunStarted
    | RunResumed
    | GraphGrew
    | NodeStarted
    | CacheMissed
    | JoinDecided
    | NodeWaiting
    | NodeStreamed
    | NodeLogged
    | NodeSpent
    | NodeDecoded
    | NodeDenoised
    | NodeRepairing
    | NodeRetrying
    | NodeRerouted
    | HumanAsked
    | HumanAnswered
    | BreakerChanged
    | BudgetReached
    | NodeFinished
    | RunMeasured
    | RunFinished
)
Listener = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Subscription:
    """A listener for events of `kinds` only; other events are not prepared for it."""

    kinds: frozenset[type]
    listener: Listener

    def __call__(self, event: Event) -> None:
        self.listener(event)


def to_json(event: Event) -> str:
    """The event as one line of JSON, its class under "event"; see `jsonable` for other values."""
    fields = {f.name: getattr(event, f.name) for f in dataclasses.fields(event)}
    return json.dumps(
        {"event": type(event).__name__, **fields}, default=jsonable, ensure_ascii=False
    )


def jsonable(value: Any) -> Any:
    """`value` as JSON types, or else its `repr`; for `json.dumps(default=...)`."""
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return repr(value)
