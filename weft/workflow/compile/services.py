"""What node functions find in the run that they are part of: tools, models, a seed.

Node functions are compiled once for all runs of a workflow, so they know no run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.core.ids import NodeId
from weft.engine.graph.node import NodeContext
from weft.workflow.runtime.models.factory import ModelSource
from weft.workflow.runtime.tools.toolset import Toolset

if TYPE_CHECKING:
    from weft.agents.agent import Answer
    from weft.planner.routing import ToolHistory
    from weft.reasoning.thought import Thought


@dataclass(frozen=True, slots=True)
class Services:
    """Bound to one run; see `services_of`. Opened and closed by whoever runs the graph.

    `history`: what is known of tools to choose among. `findings`: what nodes that think or act came
    to in full; their values are no more than the answers. `sampled`: models whose default sampling
    was told.
    """

    tools: Toolset
    models: ModelSource
    history: Callable[[], ToolHistory]
    seed: int = 0
    findings: dict[NodeId, Thought | Answer] = field(default_factory=dict)
    sampled: set[str] = field(default_factory=set)


def services_of(context: NodeContext) -> Services:
    """The services of the run that a node belongs to."""
    services: Services = context.services
    return services
