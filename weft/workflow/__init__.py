"""Workflows in YAML and Python, and how they become graphs, models, tools and stores.

load(path) -> Flow             a workflow file; raises `SourceError`
loads(text, file=...) -> Flow  the same for text
Flow(name, ...)                a workflow in Python; see its methods
json_schema() -> dict          the schema of workflow files, for editors
Models()                       model clients to share between several runs

Names are imported on first use, so that reading a journal needs no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.workflow.document import WorkflowDocument, json_schema
    from weft.workflow.document.graph_view import GraphView, ViewEdge, ViewNode
    from weft.workflow.flow import Expression, Flow, Handle
    from weft.workflow.flow.flow import load, loads
    from weft.workflow.flow.python_values import literal
    from weft.workflow.runtime.models.factory import Models, ModelSource
    from weft.workflow.runtime.results.result import FlowResult
    from weft.workflow.runtime.run import FlowRun

_MODULES = {
    "WorkflowDocument": "weft.workflow.document",
    "Expression": "weft.workflow.flow",
    "Flow": "weft.workflow.flow",
    "FlowResult": "weft.workflow.runtime.results.result",
    "FlowRun": "weft.workflow.runtime.run",
    "GraphView": "weft.workflow.document.graph_view",
    "Handle": "weft.workflow.flow",
    "ModelSource": "weft.workflow.runtime.models.factory",
    "Models": "weft.workflow.runtime.models.factory",
    "ViewEdge": "weft.workflow.document.graph_view",
    "ViewNode": "weft.workflow.document.graph_view",
    "json_schema": "weft.workflow.document",
    "literal": "weft.workflow.flow.python_values",
    "load": "weft.workflow.flow.flow",
    "loads": "weft.workflow.flow.flow",
}
__all__ = [
    "Expression",
    "Flow",
    "FlowResult",
    "FlowRun",
    "GraphView",
    "Handle",
    "ModelSource",
    "Models",
    "ViewEdge",
    "ViewNode",
    "WorkflowDocument",
    "json_schema",
    "literal",
    "load",
    "loads",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'weft.workflow' has no attribute {name!r}")
    return getattr(import_module(module), name)
