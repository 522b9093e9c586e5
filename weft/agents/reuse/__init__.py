"""Tool calls that need not be made: identical ones, similar ones, and those of an earlier run.

Knows no tool; what may be reused or fused is what the tools' specs promise.
"""

from weft.agents.reuse.tools import ReuseCounts, ReusingTools

__all__ = ["ReuseCounts", "ReusingTools"]
