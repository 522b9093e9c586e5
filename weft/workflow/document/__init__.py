"""The typed document: what a workflow file says, as frozen values. Runs and resolves nothing."""

from weft.workflow.document.document import Document, ToolDocument
from weft.workflow.document.nodes import Block, Body, NodeSpec
from weft.workflow.document.schema import json_schema
from weft.workflow.document.step import Step

__all__ = ["Block", "Body", "Document", "NodeSpec", "Step", "ToolDocument", "json_schema"]
