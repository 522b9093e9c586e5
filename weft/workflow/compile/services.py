"""What the works of one run share: tools, models, and the seed of its randomness."""

from __future__ import annotations

from dataclasses import dataclass

from weft.workflow.models import ModelSource
from weft.workflow.toolset import Toolset


@dataclass(frozen=True, slots=True)
class Services:
    """Given to every work when it is made. Opened and closed by whoever runs the graph."""

    tools: Toolset
    models: ModelSource
    seed: int = 0
