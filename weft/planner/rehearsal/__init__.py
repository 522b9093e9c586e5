"""Rehearsal of plans: declared facts are followed step by step before the first call is made.

Tools declare what they need and make (`@weft.tool(needs=["at({room})"], makes=["open({door})"])`).
Before a plan runs, `rehearse` finds each step whose needs would not hold, fills in calls that make
them hold, and orders steps that would disturb one another. After SayPlan (Rana et al., CoRL 2023),
with a symbolic search in place of its simulator and its path planner.
"""

from weft.planner.rehearsal.options import RehearsalOptions
from weft.planner.rehearsal.rehearsal import RehearsedPlan, facts_after, rehearse
from weft.planner.rehearsal.tool_facts import tool_facts

__all__ = ["RehearsalOptions", "RehearsedPlan", "facts_after", "rehearse", "tool_facts"]
