"""Plans as workflows and back: plan, file and drawing are views of one graph. Runs nothing."""

from weft.workflow.planned.freeze import flow_of
from weft.workflow.planned.thaw import plan_of

__all__ = ["flow_of", "plan_of"]
