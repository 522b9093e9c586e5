"""What errands are run with: the tools and their graph, what matters, who watches, who decides.

Knows no single errand; `weft.planner.routing.journey` carries one out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from difflib import get_close_matches

from weft.core.errors import UnknownReference
from weft.core.ports import ModelClient, ToolRunner
from weft.planner.routing.check import check_graph
from weft.planner.routing.cost import Weights
from weft.planner.routing.goal import Errand, Goal
from weft.planner.routing.graph import ToolGraph
from weft.planner.routing.history import History
from weft.planner.routing.monitor import Monitor

Log = Callable[[str], None]


def _nowhere(_: Log) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Router:
    """Runs errands over `graph` with `tools`.

    weights      what matters; see `Weights`
    monitors     watch every errand, beside its work
    history      what is known of past calls; every call adds to it
    model        is asked once when no way is left and lesser goals can be reached; None: nobody is
    person_s     how long a person has to answer when that is not enough; None: nobody is asked
    patience_s   how long the choice of the next calls waits for monitors that still look
    decision_s   how long the model has to answer
    logs         takes what a tool logs while it is called
    """

    graph: ToolGraph
    tools: ToolRunner
    weights: Weights = field(default_factory=Weights)
    monitors: Sequence[Monitor] = ()
    history: History = field(default_factory=History)
    model: ModelClient | None = None
    person_s: float | None = None
    patience_s: float = 0.1
    decision_s: float = 120.0
    logs: Callable[[Log], AbstractContextManager[None]] = _nowhere

    def check(self, errand: Errand) -> None:
        """Check that `errand` fits the graph, and the graph the tools.

        Raises: `UnknownReference` for a want that no tool gives or needs; what `check_graph`
        raises.
        """
        check_graph(self.graph, {spec.name: spec for spec in self.tools.specs()})
        for goal in (errand.goal, *errand.lesser):
            self._check_goal(goal)

    def _check_goal(self, goal: Goal) -> None:
        for want in goal.wants:
            if want not in self.graph.names:
                near = get_close_matches(want, self.graph.names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else "name a tool, or what a tool gives"
                raise UnknownReference(f"nothing gives {want!r}, which is wanted", hint=hint)
