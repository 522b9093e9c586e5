"""A workflow file, from text to a checked unit. Runs nothing."""

from weft.workflow.document.spec.document import ToolDocument, WorkflowDocument, json_schema
from weft.workflow.document.spec.nodes import BaseNode, Block, Body, NodeSpec

__all__ = [
    "BaseNode",
    "Block",
    "Body",
    "NodeSpec",
    "ToolDocument",
    "WorkflowDocument",
    "json_schema",
]
