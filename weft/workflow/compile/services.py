"""What the works of one run share: tools and what is known of them, models, a seed."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.agents.agent import Answer
from weft.core.ids import NodeId
from weft.planner.routing import History
from weft.reasoning.thought import Thought
from weft.workflow.compile.identity import Digests
from weft.workflow.models import ModelSource
from weft.workflow.toolset import Toolset


@dataclass(frozen=True, slots=True)
class Services:
    """Given to every work when it is made. Opened and closed by whoever runs the graph.

    `digests`: of code, for the identities of nodes; without it nodes have none. `findings`: what
    nodes that think or act came to in full; their values are no more than the answers. `sampled`:
    models whose default sampling was told.
    """

    tools: Toolset
    models: ModelSource
    seed: int = 0
    history: History = field(default_factory=History)
    digests: Digests | None = None
    findings: dict[NodeId, Thought | Answer] = field(default_factory=dict)
    sampled: set[str] = field(default_factory=set)
