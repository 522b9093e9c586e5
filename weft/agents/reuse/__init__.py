"""Avoids tool calls: identical ones, similar ones, and those of an earlier run."""

from weft.agents.reuse.tools import ReuseCounts, ReusingTools

__all__ = ["ReuseCounts", "ReusingTools"]
