"""Workflows in Python: `Flow`, the handles that its methods return, and its runs."""

from weft.workflow.flow.flow import Flow
from weft.workflow.flow.handle import Expression, Handle

__all__ = ["Expression", "Flow", "Handle"]
