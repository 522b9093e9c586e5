"""The engine's model of a program: nodes, edges, joins and policies. Immutable; runs nothing.

A node function is async. It returns the node's value, or one of these:

    Skip      leave this node and what depends on it out, on purpose
    AskHuman  pause until a person answers, then continue with `then`
    Expand    append nodes, pause until they are joined, then continue with `then`
    Partial   a value of which something is missing

The node functions of map, loop, branch and sub-workflow all return `Expand` (see
`weft.engine.kinds`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Final, Literal, Protocol

from weft.core.budget import Budget
from weft.core.errors import Failure
from weft.core.events import JoinMode, Outcome
from weft.core.ids import NodeId
from weft.core.ports import Program
from weft.core.values import Denoised, Speculated, Usage, constructor


class Missing(Enum):
    """The type of `MISSING`, which distinguishes "no value" from None."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING


class NodeContext(Protocol):
    """The run as a node function sees it."""

    @property
    def node(self) -> NodeId:
        """The node's id."""

    @property
    def scope(self) -> NodeId:
        """The prefix for ids of appended nodes; differs from `node` in a later attempt."""

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""

    @property
    def timed_out(self) -> bool:
        """Whether the node's own time limit has ended this attempt: why it is being cancelled."""

    @property
    def priority(self) -> int:
        """The node's urgency: its remaining critical path, in thousandths of a weight unit."""

    @property
    def program(self) -> Program:
        """The run, the remaining critical path from this node and of the run, the work left."""

    @property
    def services(self) -> Any:
        """The `services` of the `Run`, for all its node functions; nodes are shared by runs."""

    def log(self, text: str) -> None:
        """Log a line for the user (event `NodeLogged`)."""

    def stream(self, text: str, tokens: int = 0) -> None:
        """Show output while it is produced (event `NodeStreamed`)."""

    def reroute(self, to: NodeId, failure: Failure) -> None:
        """Announce that `to` replaces what failed here (event `NodeRerouted`).

        For a node function that waits for nodes it appended.
        """

    def spend(self, usage: Usage) -> None:
        """Report consumption; the budgets of the node, its scopes and the run are charged."""

    def decoded(self, how: Speculated | Denoised | None) -> None:
        """Emit `NodeDecoded` or `NodeDenoised` for an answer that came several tokens a step."""

    def repairing(self, number: int, failure: Failure) -> None:
        """Announce the repair `number` of this attempt (event `NodeRepairing`)."""

    def tokens_left(self) -> int | None:
        """The smallest token allowance left in the budgets that this node is charged to."""

    def time_left(self) -> float | None:
        """Seconds until a timeout, a budget or the deadline ends this node; None: nothing does."""

    def append(self, nodes: Sequence[Node]) -> None:
        """Add nodes now, while this node function runs. They end before this node does.

        All are taken in at once: to append more than a few hundred, return `Expand`.

        Raises: `BuildError` when they do not fit the graph, `NodeLimit` when they are too many.
        """

    async def make_room(self, count: int, left: int | None = None) -> None:
        """Wait until `count` nodes may be made for an `Expand`; `left` are still to come in all.

        This keeps a large expansion from blocking the run.

        Raises: `NodeLimit` when the run may not have `left` more nodes.
        """

    def cancel(self, node: NodeId, reason: str) -> None:
        """End `node`, which this node appended, and all inside it; ended nodes stay as they are.

        Raises: `UnknownReference` when this node did not append it.
        """

    async def outcome(self, node: NodeId) -> Outcome:
        """Wait until `node` has ended. This node gives its slot back and continues without one.

        Raises: `UnknownReference`, or `CycleError` when `node` cannot end before this one.
        """

    async def ask(
        self, question: AskHuman, name: str, identity: str, *, any_attempt: bool = False
    ) -> Any:
        """A person's answer: a node `name` inside this one asks `question` (without `then`).

        `identity` names the content of the question, and `name` should be derived from it: a
        resumed run takes a recorded answer for the same name and identity. An earlier attempt's
        answer holds for this one; with `any_attempt` also that of an attempt of a node around it,
        at the same place.

        Raises: `Cancelled` when the question is cancelled, or its time is up.
        """

    def answer_of(self, node: NodeId, name: str) -> Any:
        """The answer to the question `name` that holds for `node`, which has ended; else None.

        Raises: `UnknownReference`.
        """

    def items(self, streamed: StreamedItems) -> AsyncGenerator[Any, None]:
        """The values of a streamed map in declared order, each once it and those before are done.

        Raises: the item's failure as a `RunError`. Items left out on purpose do not appear.
        """


Inputs = Mapping[str, Any]
NodeFn = Callable[[NodeContext, Inputs], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class StreamedItems:
    """The value of a streaming edge: the item nodes of a map that is still running, in order."""

    nodes: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """The node waits for `source`; its value arrives as `inputs[name]`. No name: order only.

    `stream`: wait only until `source` has appended its items, and receive `StreamedItems` instead
    of the list (or the list itself, when the source is already complete or not a map).
    `optional`: with the join "all", a source left out on purpose leaves no node out; its value is
    None.
    """

    source: NodeId
    name: str = ""
    stream: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Join:
    """When a node has enough of its inputs, or an expanding node enough of its children.

    all           every branch succeeded; a child left out on purpose is dropped, an input left
                  out on purpose leaves the node out too (a failed input counts more than that)
    any           one branch succeeded
    quorum        `k` branches succeeded
    first_valid   one branch succeeded with a value that `valid` accepts
    best_effort   every branch ended; `default` replaces those that failed (MISSING: they are
                  dropped)

    `cancel_rest`: branches that are no longer needed are cancelled as soon as the join is decided,
    unless another node needs them. Branches that end in the same scheduling step count in declared
    order. `valid` must be a fast, pure function; when it raises, the value is not valid.
    `counts` is for best_effort: what its branches are called where their losses count. A dropped
    branch then makes the value partial, and a failure where no branch succeeded; a branch replaced
    by `default` is reported. The value of a node whose own join counts is the list of its branches,
    also when a budget or a deadline ends the run before the node could start.
    """

    mode: JoinMode = "all"
    k: int = 1
    valid: Callable[[Any], bool] | None = None
    default: Any = None
    cancel_rest: bool = False
    counts: str = ""


ALL: Final = Join()
ANY: Final = Join("any")


def quorum(k: int, *, cancel_rest: bool = True) -> Join:
    """`k` branches must succeed; the others are cancelled."""
    return Join("quorum", k=k, cancel_rest=cancel_rest)


def first_valid(valid: Callable[[Any], bool] | None = None) -> Join:
    """The first branch whose value `valid` accepts (without it: any); losers are cancelled."""
    return Join("first_valid", valid=valid, cancel_rest=True)


def best_effort(default: Any = MISSING, *, counts: str = "") -> Join:
    """Every branch that succeeded; `default` replaces a failed one, else it is dropped."""
    return Join("best_effort", default=default, counts=counts)


@dataclass(frozen=True, slots=True)
class Retry:
    """Repeat a node when its error is `retryable`, or one of `on`.

    `on`: names of exception classes, `module.Class` or `Class`, and HTTP statuses. `only`, if not
    empty: no other errors than these are retried, and `on` has no effect. `attempts` counts the
    first one. Attempt n+1 waits delay_s * factor**(n-1), at most `max_delay_s`, varied by up to
    `jitter` of itself, and never less than an error's own `retry_after_s`. There is no
    attempt that the run's deadline would come before.
    """

    attempts: int = 3
    delay_s: float = 0.5
    factor: float = 2.0
    max_delay_s: float = 30.0
    jitter: float = 0.1
    on: tuple[str | int, ...] = ()
    only: tuple[str | int, ...] = ()


MODEL_RETRY: Final = Retry(only=("ModelOverloaded", "ModelUnavailable"))
"""The retry of a model call that declares none: of 429, 5xx and lost connections."""


@dataclass(frozen=True, slots=True)
class NodeCache:
    """Reuse a result for equal inputs. `identity` names the definition of the node function.

    `ordered`: mappings are equal only in the same order, for nodes that write them into texts.
    """

    identity: str
    ttl_s: float | None = None
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class BudgetLimit:
    """A budget and what happens when it is spent.

    stop      nothing that it pays for starts any more, what runs is cancelled
    degrade   what runs continues; nodes that spend take their `degrade` node, their default, or are
              left out; nodes that do not spend run
    """

    budget: Budget
    on_reached: Literal["stop", "degrade"] = "stop"

    @property
    def as_data(self) -> dict[str, Any]:
        """The limit as a workflow file has it: the amounts that are limited, and `on_reached`."""
        amounts = asdict(self.budget)
        given = {name: amount for name, amount in amounts.items() if amount is not None}
        return {**given, "on_reached": self.on_reached}


@dataclass(frozen=True, slots=True)
class Policy:
    """What happens around a node function.

    `timeout_s` bounds one attempt, with everything the node appends. When the last attempt fails:
    `fallback` runs in the node's place; else `default` becomes its value; else the node fails, and
    what depends on it is skipped. `on_failure`: "fail" also marks the run as failed, "skip" not.

    `resource` is the class of slot the node takes while it runs (None: only a general slot).
    `spends` marks a node that costs tokens or money. `degrade` runs instead once a budget is spent.
    `weight` is the expected duration in any unit; it only orders nodes that wait for slots.
    """

    timeout_s: float | None = None
    retry: Retry | None = None
    fallback: Node | None = None
    default: Any = MISSING
    on_failure: Literal["fail", "skip"] = "fail"
    resource: str | None = None
    cache: NodeCache | None = None
    limit: BudgetLimit | None = None
    spends: bool = False
    degrade: Node | None = None
    weight: float = 1.0


DEFAULT_POLICY: Final = Policy()
QUESTION: Final = "question"
"""The kind of nodes that ask a person for the node function around them."""


@dataclass(frozen=True, slots=True)
class Node:
    """One unit of the program.

    `work`, the node function, receives the values of `edges` under their names, and the constants
    `given`. With a join other than "all", only the branches that won are among the inputs.
    `kind` is a word for people: "tool", "model", "map" and so on. `identity` names the definition
    of the node function: an earlier part's outcome is reused only while it is the same.
    `recallable` is false for a node function with results other than its value; its outcome, and
    that of nodes it appends without an identity, is never reused.
    """

    id: NodeId
    work: NodeFn
    edges: tuple[Edge, ...] = ()
    given: Inputs = field(default_factory=dict)
    join: Join = ALL
    policy: Policy = DEFAULT_POLICY
    kind: str = "call"
    identity: str = ""
    recallable: bool = True


make_node: Final = constructor(Node)
"""A fast constructor of `Node`, for callers that make very many."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Returned by a node function: leave this node out on purpose; not a failure."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Partial:
    """Returned by a node function: a value of which something is missing, and what that is.

    The node succeeds with the value; the run is partial, and the value is not cached.
    """

    value: Any
    missing: Failure


Then = Callable[[NodeContext, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class AskHuman:
    """Returned by a node function: ask a person. The value is `then(answer)`, or the answer.

    `tool` and `arguments`: the call that the person is to approve, if the question is about one.
    """

    question: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    then: Then | None = None
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Expand:
    """Returned by a node function: append `nodes`, join `results` (ids among them), continue.

    With the modes any, quorum and first_valid, the remaining children are cancelled. `then` gets
    the list of the joined values in declared order; without it the list is the value.
    "any" and "first_valid" deliver a list of one. At most `width` of `results` run at once. `items`
    offers `results` to streaming consumers.
    """

    nodes: tuple[Node, ...]
    results: tuple[NodeId, ...]
    then: Then | None = None
    join: Join = ALL
    width: int | None = None
    items: bool = False
