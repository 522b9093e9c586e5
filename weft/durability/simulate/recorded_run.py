"""Builds a script of every node from the records of a run.

What is not recorded is inferred: the node that a node function waited for (the last to end before
it continued), and the full duration of interrupted work (the median of the same code).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from weft.core.calls import ModelAnswered, ModelCalled, ToolCalled, ToolReturned
from weft.core.errors import Failure, JoinUnsatisfied, RunError
from weft.core.events import (
    GraphGrew,
    HumanAnswered,
    HumanAsked,
    JoinDecided,
    NodeFinished,
    NodeInfo,
    NodeRerouted,
    NodeRetrying,
    NodeSpent,
    NodeStarted,
    NodeWaiting,
    RunFinished,
    RunMeasured,
    RunResumed,
    RunStarted,
    whole,
)
from weft.core.ids import NodeId
from weft.core.ports.journal import Record
from weft.durability.simulate.script import (
    AppendStep,
    Attempt,
    AwaitStep,
    CallKind,
    ExpandStep,
    HumanStep,
    NodeScript,
    RecordedRun,
    TimeSpan,
    WorkStep,
)
from weft.engine.analysis.critical_path import family
from weft.engine.graph.node import Join

_MIN_REST_S: Final = 0.001
"""The least time that interrupted work would have continued."""
_Call = tuple[CallKind, str, float, float]


def recording(records: Iterable[Record]) -> RecordedRun:
    """The script of a run that one process carried out.

    Raises: `RunError` for records without a beginning, or of a run that was resumed.
    """
    reader = _RunReader()
    for record in records:
        reader.read(record)
    return reader.done()


@dataclass(slots=True)
class _NodeLifetime:
    """The state of one node while its records are read. `since_s`: its own code runs since then."""

    script: NodeScript
    since_s: float | None = None
    paused_s: float | None = None
    growth: ExpandStep | None = None
    ended_s: float | None = None
    begun: bool = False
    calls: list[_Call] = field(default_factory=list)
    parts: list[GraphGrew] = field(default_factory=list)
    open: dict[object, tuple[CallKind, str, float]] = field(default_factory=dict)

    @property
    def attempt(self) -> Attempt:
        return self.script.attempts[-1]


class _RunReader:
    def __init__(self) -> None:
        self._flow: RunStarted | None = None
        self._top: list[NodeScript] = []
        self._lives: dict[NodeId, _NodeLifetime] = {}
        self._decided: dict[NodeId, float] = {}
        self._ends: list[tuple[float, NodeId]] = []
        self._wall_s = 0.0
        self._ended = False
        self._measured: RunMeasured | None = None
        self._rerouted: dict[NodeId, NodeId] = {}
        self._joins: defaultdict[NodeId, list[tuple[float, frozenset[NodeId]]]] = defaultdict(list)

    def read(self, record: Record) -> None:
        self._wall_s = max(self._wall_s, record.at_s)
        match record:
            case RunStarted():
                self._flow = record
                self._top = [self._born(info) for info in record.nodes]
            case RunResumed():
                raise RunError(
                    f"{record.run} was carried out by several processes",
                    hint="simulate a run that was not resumed: its times belong together",
                )
            case ModelCalled() | ToolCalled() | ModelAnswered() | ToolReturned():
                self._call(record)
            case RunMeasured():
                self._measured = record
            case RunFinished(status=status):
                self._ended = status != "cancelled"
            case _:
                life = self._lives.get(getattr(record, "node", NodeId("")))
                if life is not None:
                    self._event(life, record)
                elif isinstance(record, GraphGrew):
                    self._grew(self._lives[record.parent], record)

    def done(self) -> RecordedRun:
        if self._flow is None:
            hint = "a run that was cut off before its first node has none: resume it first"
            raise RunError("the records of the run have no beginning", hint=hint)
        scripts = {node: life.script for node, life in self._lives.items()}
        self._judge_values()
        _complete(scripts.values())
        top = tuple(self._top)
        flow = self._flow
        fields = (flow.flow, top, flow.limits, self._wall_s, scripts, self._ended)
        return RecordedRun(*fields, self._measured, len({at_s for at_s, _ in self._ends}))

    # -- events of one node ------------------------------------------------------------------

    def _event(self, life: _NodeLifetime, record: Record) -> None:
        match record:
            case NodeStarted(at_s=at_s):
                life.script.attempts.append(Attempt())
                life.since_s, life.paused_s, life.growth = at_s, None, None
                life.parts.clear()
                life.begun = True
            case NodeWaiting(at_s=at_s) | HumanAsked(at_s=at_s):
                self._stop(life, at_s)
            case HumanAnswered(at_s=at_s):
                if life.paused_s is not None:
                    life.attempt.steps.append(HumanStep(at_s - life.paused_s))
                life.since_s, life.paused_s = at_s, None
            case JoinDecided(node=node, winners=winners, at_s=at_s):
                self._decided[node] = at_s
                self._joins[node].append((at_s, frozenset(winners)))
            case NodeSpent(usage=usage):
                life.script.usage += usage
            case NodeFinished():
                self._finished(life, record)
            case NodeRetrying() | NodeRerouted():
                self._failed(life, record)
            case _:
                pass  # streaming, logging and decoding take no time of their own

    def _failed(self, life: _NodeLifetime, record: NodeRetrying | NodeRerouted) -> None:
        if isinstance(record, NodeRerouted) and not record.instead:
            return  # the node function's own doing: it continues
        self._stop(life, record.at_s, ends=True)
        _fail(life.script, record.failure)
        if isinstance(record, NodeRerouted):
            self._rerouted[record.node] = record.to
        elif len(life.script.attempts) == 1:
            life.script.retry_delay_s = record.delay_s

    def _born(self, info: NodeInfo) -> NodeScript:
        script = NodeScript(info)
        self._lives[info.id] = _NodeLifetime(script)
        return script

    def _grew(self, life: _NodeLifetime, grown: GraphGrew) -> None:
        life.parts.append(grown)
        if grown.more:
            return
        grown, life.parts = whole(life.parts), []
        nodes = tuple(self._born(info) for info in grown.nodes)
        substitute = self._rerouted.pop(grown.parent, None)
        if substitute is not None and grown.results == (substitute,):
            life.script.fallback = nodes[0]
            life.growth = ExpandStep(nodes, grown.results, Join(), None, items=False)
        elif grown.results is None:
            self._stop(life, grown.at_s)
            life.since_s, life.paused_s = grown.at_s, None
            life.attempt.steps.append(AppendStep(nodes))
        else:
            join = Join(grown.join, grown.quorum)
            life.growth = ExpandStep(nodes, grown.results, join, grown.width, grown.items)
            life.attempt.steps.append(life.growth)
            self._decided.pop(grown.parent, None)

    def _finished(self, life: _NodeLifetime, record: NodeFinished) -> None:
        outcome, script = record.outcome, life.script
        if life.begun and script.fallback is None and script.attempts:
            self._stop(life, record.at_s, ends=True)
        life.ended_s = record.at_s
        self._ends.append((record.at_s, record.node))
        script.whole = outcome.status != "cancelled"
        script.skipped = outcome.status == "skipped"
        script.default = outcome.via == "default"
        failed = outcome.status == "failed" or script.default
        if failed and outcome.failure is not None:
            _fail(script, outcome.failure)

    def _stop(self, life: _NodeLifetime, at_s: float, *, ends: bool = False) -> None:
        """End a stretch of the node's own code at `at_s`, unless it paused. `ends`: for good."""
        if not life.script.attempts:
            return  # a substitute runs for a node that never began
        if life.since_s is None and life.paused_s is not None:
            if ends and self._waited_for_child(life.script.info.id, at_s):
                pass  # its own work ended before its last child
            elif life.growth is not None:
                life.since_s = self._joined_s(life.script.info.id, life.growth, at_s)
            else:
                self._awaited(life, life.paused_s, at_s)
        life.growth = None
        if life.since_s is not None:
            work = _stretches(life, life.since_s, at_s)
            if work.stretches:
                life.attempt.steps.append(work)
        life.since_s, life.paused_s = None, at_s

    def _joined_s(self, node: NodeId, growth: ExpandStep, at_s: float) -> float:
        """When a node that had paused for an expansion continued, before `at_s`."""
        ends = [self._lives[result].ended_s for result in growth.results]
        latest = max((end for end in ends if end is not None and end <= at_s), default=at_s)
        return self._decided.pop(node, latest)

    def _waited_for_child(self, node: NodeId, at_s: float) -> bool:
        """Whether the last node to end was a child of `node`, at `at_s`."""
        ended = self._ends[-1] if self._ends else None
        if ended is None or ended[0] != at_s:
            return False
        return self._lives[ended[1]].script.info.parent == node

    def _awaited(self, life: _NodeLifetime, paused_s: float, at_s: float) -> None:
        """Add what a node function waited for: the last node to end before it continued."""
        for ended_s, node in reversed(self._ends):
            if ended_s < paused_s:
                break
            if ended_s <= at_s:
                life.attempt.steps.append(AwaitStep(node))
                life.since_s = ended_s
                return
        life.since_s = paused_s

    def _judge_values(self) -> None:
        """Reject the values that a `first_valid` join passed over while it waited."""
        for node, life in self._lives.items():
            for branches in _doubtful(life.script):
                decided = [join for join in self._joins[node] if join[1].issubset(branches)]
                until_s, won = decided[-1] if decided else (self._wall_s, frozenset())
                for branch in branches:
                    ended_s = self._lives[branch].ended_s
                    if ended_s is not None and ended_s <= until_s and branch not in won:
                        life.script.rejects |= {branch}

    # -- calls -------------------------------------------------------------------------------

    def _call(self, record: ModelCalled | ToolCalled | ModelAnswered | ToolReturned) -> None:
        life = self._lives.get(record.node)
        if life is None:
            return
        key = (record.attempt, record.call)
        match record:
            case ModelCalled(model=model):
                life.open[key] = ("model", model, record.at_s)
            case ToolCalled(tool=tool):
                life.open[key] = ("tool", tool, record.at_s)
            case _ if key in life.open:
                kind, name, begun_s = life.open.pop(key)
                life.calls.append((kind, name, begun_s, record.at_s))
            case _:
                pass  # its beginning was not recorded


def _stretches(life: _NodeLifetime, begun_s: float, ended_s: float) -> WorkStep:
    """The time from `begun_s` to `ended_s` by call; of parallel calls the first counts."""
    calls = list(life.calls)
    calls += [(kind, name, at_s, ended_s) for kind, name, at_s in life.open.values()]
    found: list[TimeSpan] = []
    now_s = begun_s
    for kind, name, call_s, end_s in sorted(calls, key=lambda call: call[2]):
        start_s, stop_s = max(call_s, now_s), min(end_s, ended_s)
        if stop_s <= start_s:
            continue
        if start_s > now_s:
            found.append(TimeSpan("own", "", start_s - now_s))
        found.append(TimeSpan(kind, name, stop_s - start_s))
        now_s = stop_s
    if ended_s > now_s:
        found.append(TimeSpan("own", "", ended_s - now_s))
    return WorkStep(tuple(found), begun_s)


def _complete(scripts: Iterable[NodeScript]) -> None:
    """Extend interrupted work to the usual time of the same code, where that is longer."""
    samples: defaultdict[str, list[float]] = defaultdict(list)
    for script in scripts:
        if script.whole and (work := _leaf(script)) is not None:
            samples[family(script.info.id)].append(work.seconds)
    for script in scripts:
        if script.whole:
            continue
        usual = samples[family(script.info.id)]
        if not script.attempts:
            seconds = median(usual) if usual else 0.0
            script.attempts.append(Attempt([WorkStep((TimeSpan("own", "", seconds),))]))
            continue
        work = _leaf(script)
        done_s = work.seconds if work is not None else 0.0
        longer = [seconds - done_s for seconds in usual if seconds > done_s]
        more_s = median(longer) if work is not None and longer else _MIN_REST_S
        last = work.stretches[-1] if work is not None else TimeSpan("own", "", 0.0)
        rest = TimeSpan(last.kind, last.name, more_s)
        script.attempts[-1].steps.append(WorkStep((rest,)))


def _fail(script: NodeScript, failure: Failure) -> None:
    """Fail the last attempt, unless a join failed: the simulator decides joins itself."""
    if not script.attempts:
        return
    attempt = script.attempts[-1]
    joined = bool(attempt.steps) and isinstance(attempt.steps[-1], ExpandStep)
    if attempt.failure is None and not (joined and failure.error == JoinUnsatisfied.__name__):
        attempt.failure = failure


def _doubtful(script: NodeScript) -> list[tuple[NodeId, ...]]:
    """The branches of each `first_valid` join of a node."""
    own = [script.info.sources] if script.info.join == "first_valid" else []
    steps = [step for attempt in script.attempts for step in attempt.steps]
    grown = [step for step in steps if isinstance(step, ExpandStep)]
    return own + [step.results for step in grown if step.join.mode == "first_valid"]


def _leaf(script: NodeScript) -> WorkStep | None:
    """The work of a node that did nothing else."""
    steps = script.attempts[-1].steps if script.attempts else []
    only = steps[0] if len(steps) == 1 else None
    return only if isinstance(only, WorkStep) else None
