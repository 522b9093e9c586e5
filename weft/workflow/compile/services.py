"""What the works of one run share: tools and what is known of them, models, a seed."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.planner.routing import History
from weft.workflow.compile.identity import Digest
from weft.workflow.models import ModelSource
from weft.workflow.toolset import Toolset


@dataclass(frozen=True, slots=True)
class Services:
    """Given to every work when it is made. Opened and closed by whoever runs the graph.

    `digest`: of files, for the identities of nodes; without it nodes have none.
    """

    tools: Toolset
    models: ModelSource
    seed: int = 0
    history: History = field(default_factory=History)
    digest: Digest | None = None
