"""Plans of calls that were made one after the other, recovered from the flow of their data."""

from weft.planner.regroup.regrouping import (
    Ambiguity,
    RegroupedPlan,
    ToolCallRecord,
    regroup,
    training_turns,
)

__all__ = ["Ambiguity", "RegroupedPlan", "ToolCallRecord", "regroup", "training_turns"]
