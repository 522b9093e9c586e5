"""Services of a run for its node functions: tools, models, a seed.

Node functions are compiled once for all runs of a workflow, so they hold nothing of a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.core.ids import NodeId
from weft.core.ports import ToolRunner
from weft.engine.graph.node import NodeContext

if TYPE_CHECKING:
    from weft.agents.agent import Answer
    from weft.planner.routing import ToolHistory
    from weft.reasoning.thought import Thought
    from weft.workflow.runtime.models.factory import ModelSource
    from weft.workflow.runtime.tools.toolset import Toolset


@dataclass(frozen=True, slots=True)
class Services:
    """The services of one run; see `services_of`. The owner of the run opens and closes them.

    `history`: past results of alternative tools. `findings`: the full results of nodes that think
    or run an agent; the nodes' values are only the answers. `sampled`: models whose default
    sampling was logged. `conversations`: the threads of the run's journal, where a node has one.
    """

    tools: Toolset
    models: ModelSource
    history: Callable[[], ToolHistory]
    seed: int = 0
    findings: dict[NodeId, Thought | Answer] = field(default_factory=dict)
    sampled: set[str] = field(default_factory=set)
    conversations: ToolRunner | None = None


def services_of(context: NodeContext) -> Services:
    """The services of a node's run."""
    services: Services = context.services
    return services
