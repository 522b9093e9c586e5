"""Conversion of plans to workflows and back; a plan, a file and a drawing show the same graph."""

from weft.workflow.plans.flow_to_plan import plan_of
from weft.workflow.plans.plan_to_flow import flow_of

__all__ = ["flow_of", "plan_of"]
