"""Programs as weft runs them: one graph each on weft's engine, all over one fleet client.

What the client knows beyond single calls: where each stands in its program, what begins alike, what
nobody needs any more, and what is known of the next prompt while a tool runs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from evals.serving.known import Known, known_parts, new_tokens
from evals.serving.programs import Call, First, Ids, Program, Step, Tool, join
from evals.serving.replay import Record, request
from weft.core.events import Event, NodeFinished
from weft.core.ids import NodeId, RunId
from weft.core.ports import ModelClient, ModelRequest, Warmable, complete
from weft.engine import Edge, Graph, Inputs, Join, Node, NodeContext, NodeFn, Policy, Run

PROMPT_TOKENS_PER_S = 870
ANSWER_TOKENS_PER_S = 375
"""What a call takes of the server, in seconds: its new prompt tokens and its answer.

The speeds are those of the server here when it batches; their proportion is what orders calls.
"""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What the graphs make use of, beside what the fleet's own options say.

    `lengths` off: every step counts alike, so that only the shape of a program is known.
    """

    cancel: bool = True
    warm: bool = True
    lengths: bool = True


@dataclass(frozen=True, slots=True)
class _Given:
    """What a node gives: ids, and whether a race may take them."""

    ids: Ids
    valid: bool = True


class OnWeft:
    """Runs each program as a graph over `fleet`, which it closes."""

    def __init__(self, fleet: ModelClient, knowledge: Knowledge) -> None:
        self._fleet = fleet
        self._knowledge = knowledge

    async def run(self, program: Program, record: Record) -> None:
        def listen(event: Event) -> None:
            if isinstance(event, NodeFinished) and event.node == program.result:
                record.finished(program)

        nodes = _Nodes(program, self._fleet, self._knowledge, record).all()
        graph = Graph(program.id, nodes, keep=[NodeId(program.result)])
        result = await Run(graph, run=RunId(program.id), listeners=[listen]).wait()
        result.value(program.result)  # raises when the program failed

    async def aclose(self) -> None:
        await self._fleet.aclose()


class _Nodes:
    """Makes the nodes of one program."""

    def __init__(
        self, program: Program, fleet: ModelClient, knowledge: Knowledge, record: Record
    ) -> None:
        self._program = program
        self._fleet = fleet
        self._knowledge = knowledge
        self._record = record
        self._new_tokens = new_tokens(program)
        self._expected_s = {step.name: self._seconds(step) for step in program.steps}
        for race in program.steps:
            if isinstance(race, First):  # it ends with its quickest call
                quickest = min(self._expected_s[name] for name in race.after)
                self._expected_s.update(dict.fromkeys(race.after, quickest))

    def all(self) -> list[Node]:
        """A node for each step, and one for each prompt that is worth warming."""
        made = [self._node(step) for step in self._program.steps]
        if self._knowledge.warm and isinstance(self._fleet, Warmable):
            made += [self._warming(known, self._fleet) for known in known_parts(self._program)]
        return made

    def _node(self, step: Step) -> Node:
        edges = tuple(Edge(NodeId(name), name) for name in step.after)
        policy = Policy(
            weight=self._expected_s[step.name] if self._knowledge.lengths else 1.0,
            spends=isinstance(step, Call),
        )
        match step:
            case Call():
                return Node(NodeId(step.name), self._ask(step), edges, policy=policy, kind="model")
            case Tool():
                return Node(NodeId(step.name), _use(step), edges, policy=policy, kind="tool")
            case First():
                race = Join("first_valid", valid=_is_valid, cancel_rest=self._knowledge.cancel)
                return Node(NodeId(step.name), self._take(step), edges, join=race, policy=policy)

    def _seconds(self, step: Step) -> float:
        """The expected seconds of `step` by itself."""
        match step:
            case Call():
                prompt_s = self._new_tokens[step.name] / PROMPT_TOKENS_PER_S
                return prompt_s + step.max_tokens / ANSWER_TOKENS_PER_S
            case Tool():
                return step.seconds
            case First():
                return 0.0

    def _request(self, call: Call, prompt: Ids, context: NodeContext) -> ModelRequest:
        shared = f"{self._program.id}/{call.prefix}" if call.prefix else None
        return replace(
            request(call, prompt),
            program=context.program.last_call(),
            priority=context.priority,
            cache_prefix=shared,
        )

    def _ask(self, call: Call) -> NodeFn:
        async def work(context: NodeContext, inputs: Inputs) -> _Given:
            asked = self._request(call, call.ids(_ids(inputs)), context)
            answer = await complete(self._fleet, asked)
            self._record.outputs[self._program.id, call.name] = answer.token_ids
            return _Given(answer.token_ids, call.valid)

        return work

    def _take(self, race: First) -> NodeFn:
        async def work(_: NodeContext, inputs: Inputs) -> _Given:
            ((winner, given),) = inputs.items()
            self._record.chosen[self._program.id, race.name] = winner
            return _Given(given.ids)

        return work

    def _warming(self, known: Known, fleet: Warmable) -> Node:
        """A node that has the known beginning computed while the tool after it runs."""

        async def work(context: NodeContext, inputs: Inputs) -> None:
            beginning = join(known.pieces, _ids(inputs))
            await fleet.warm(self._request(known.call, beginning, context))

        edges = tuple(Edge(NodeId(name), name) for name in known.after)
        name = NodeId(f"{known.call.name}.warm")
        return Node(name, work, edges, policy=Policy(default=None, weight=0.0), kind="warm")


def _use(tool: Tool) -> NodeFn:
    async def work(_context: NodeContext, _inputs: Inputs) -> _Given:
        await asyncio.sleep(tool.seconds)
        return _Given(tool.result)

    return work


def _is_valid(given: _Given) -> bool:
    return given.valid


def _ids(inputs: Inputs) -> dict[str, Ids]:
    return {name: given.ids for name, given in inputs.items()}
