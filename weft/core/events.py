"""Everything a run lets the world see, as one closed union of frozen values.

The progress view, the trace, the timeline and the journal read nothing else. `at_s` is seconds
since the run started. Events of one run are totally ordered: the order of emission.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from weft.core.errors import Failure
from weft.core.ids import NodeId, RunId
from weft.core.values import Denoised, Speculated, Usage

Status = Literal["succeeded", "failed", "skipped", "cancelled"]
Via = Literal["", "cache", "default", "fallback"]
SUBSTITUTES: Final[tuple[Via, ...]] = ("default", "fallback")
"""What stands in for work that failed; a result from the cache is a success like any other."""
RunStatus = Literal["succeeded", "partial", "failed", "cancelled"]
JoinMode = Literal["all", "any", "quorum", "first_valid", "best_effort"]


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What a reader needs to draw a node, and to schedule it again: kind, inputs, slot, join.

    `streams` are those of `sources` whose items it takes one by one. `join` is the join's mode,
    `quorum` its k; `cancels`: it cancels the branches it does not need. `attempts` at most are
    made. `weight` is the expected duration, `spends` says that budgets are charged. `may_fail`: the
    run does not count as failed because it did.
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
    """How a node ended. `via` says what stood in for its own work, `failure` what went wrong.

    A skipped node with a `failure` was cut off by it; one without was left out on purpose. A node
    that succeeded by its own work, with a `failure`, has a partial value.
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
    """Another process, the `part`-th (from 2), goes on with a run; `at_s` goes on from its last.

    What follows begins again with `RunStarted`, for those who listen to this part only. What had
    ended ends again as soon as its inputs are there, `recalled`, and what is inside it is not told
    again; who has read the parts before may pass over everything recalled.
    """

    run: RunId
    part: int
    wall: str
    at_s: float


@dataclass(frozen=True, slots=True)
class GraphGrew:
    """`parent` appended `nodes` while the run was going on.

    `results`: it paused until those of them are joined as `join` says, at most `width` of them
    under way at once; `items` are offered to streaming edges. None: its work goes on meanwhile.

    Very many nodes are told in parts, each with its share of `results`; all but the last have
    `more`. Without the last, the run ended while `parent` still appended.
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
    """The parts in which the nodes of one expansion were told, in order, as one event."""
    if len(parts) == 1:
        return parts[0]
    nodes = tuple([info for part in parts for info in part.nodes])
    results = tuple([result for part in parts for result in part.results or ()])
    return dataclasses.replace(parts[-1], nodes=nodes, results=results)


@dataclass(frozen=True, slots=True)
class NodeStarted:
    """Attempt `attempt` (from 1) of a node's own work began: its slot is taken.

    `digest` stands for what the node is and what it receives; empty where nobody records the run,
    where an input has no stable content, and in later attempts.
    """

    node: NodeId
    attempt: int
    at_s: float
    digest: str = ""


@dataclass(frozen=True, slots=True)
class JoinDecided:
    """A join of the kind any, quorum or first valid has enough: `winners`, in the order they count.

    `node` is the one that waited, or the one that appended those that it waited for.
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
    """The node's own work paused: it waits for the nodes it appended, and holds no slot."""

    node: NodeId
    at_s: float


@dataclass(frozen=True, slots=True)
class NodeStreamed:
    """A piece of output while it is produced: text, and how many tokens it holds."""

    node: NodeId
    text: str
    tokens: int
    at_s: float


@dataclass(frozen=True, slots=True)
class NodeLogged:
    """A line that a tool or a node wants people to see."""

    node: NodeId
    text: str
    at_s: float


@dataclass(frozen=True, slots=True)
class NodeSpent:
    """A node reports what it consumed (in addition to what it reported before).

    `recalled`: it, and what is inside it, consumed that in an earlier part of the run.
    """

    node: NodeId
    usage: Usage
    at_s: float
    recalled: bool = False


@dataclass(frozen=True, slots=True)
class NodeDecoded:
    """An answer of a model was drafted, several tokens a step."""

    node: NodeId
    speculated: Speculated
    at_s: float


@dataclass(frozen=True, slots=True)
class NodeDenoised:
    """An answer of a diffusion model was filled in, several tokens a step."""

    node: NodeId
    denoised: Denoised
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

    `instead`: its own work is over; else it goes on, and has other nodes do what failed.
    """

    node: NodeId
    to: NodeId
    failure: Failure
    at_s: float
    instead: bool = False


@dataclass(frozen=True, slots=True)
class HumanAsked:
    """The node waits for a person. `schema` is the JSON Schema the answer must fit.

    `recalled`: it asked that in an earlier part of the run, and nobody has answered yet.
    """

    node: NodeId
    question: str
    schema: Mapping[str, Any]
    at_s: float
    recalled: bool = False


@dataclass(frozen=True, slots=True)
class HumanAnswered:
    """A person answered `value`; the node goes on. `recalled`: to an earlier part of the run."""

    node: NodeId
    at_s: float
    value: Any = None
    recalled: bool = False


@dataclass(frozen=True, slots=True)
class BudgetReached:
    """A budget is spent. `scope` is the node that owns it, or None for the run's own."""

    scope: NodeId | None
    reason: str
    degrade: bool
    at_s: float


@dataclass(frozen=True, slots=True)
class NodeFinished:
    """The one and only end of a node.

    `recalled`: an earlier part of the run had come to it; this part did not start the node, and
    `digest` is what its `NodeStarted` would have told. `run_ended`: the run was ended as a whole,
    and this node with it, before it was done. `by_name`: somebody cancelled it, or a node that it
    is inside, and not the run, a join or the work that appended it.
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
    """What this process's part of the run took of its machine: in a record, before its end.

    loop_cpu_s   processor seconds of the event loop's thread, whoever used them
    loop_late_s  seconds in which that thread could have run and had no processor, where known
    cores        processors that this process may use
    idle         the share of the machine's processors that nobody used meanwhile, where known
    loop_s       by family of nodes (`notes[*]`): how many attempts there were, and the processor
                 seconds of the loop that their own code took
    cpu_s        by node: processor seconds that its code took in threads
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
    failed, or that somebody cancelled by name, and that the run did not get over.
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
    | NodeRetrying
    | NodeRerouted
    | HumanAsked
    | HumanAnswered
    | BudgetReached
    | NodeFinished
    | RunMeasured
    | RunFinished
)
Listener = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Subscription:
    """A listener that is told events of `kinds` only; the others are not made ready for it."""

    kinds: frozenset[type]
    listener: Listener

    def __call__(self, event: Event) -> None:
        self.listener(event)


def to_json(event: Event) -> str:
    """The event as one line of JSON, its class under "event". What JSON lacks becomes text."""
    fields = {f.name: getattr(event, f.name) for f in dataclasses.fields(event)}
    return json.dumps(
        {"event": type(event).__name__, **fields}, default=jsonable, ensure_ascii=False
    )


def jsonable(value: Any) -> Any:
    """`value` made of what JSON has; for `json.dumps(default=...)`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return repr(value)
