"""Plans as workflows and back: plan, file and drawing are views of one graph. Runs nothing."""

from weft.workflow.plans.flow_to_plan import plan_of
from weft.workflow.plans.plan_to_flow import flow_of

__all__ = ["flow_of", "plan_of"]
