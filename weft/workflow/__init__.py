"""YAML and Python programs, and how they become graphs; picks models, tools and stores.

load(path) -> Flow             a workflow file; every defect raises one `SourceError`
loads(text, file=...) -> Flow  the same for text
Flow(name, ...)                a workflow in Python; see its methods
json_schema() -> dict          the schema of workflow files, for editors
Models()                       model clients to share between several runs

Names are loaded when they are first used: whoever looks at a journal needs no compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.core.lazy import lazy_names

if TYPE_CHECKING:
    from weft.workflow.document import WorkflowDocument, json_schema
    from weft.workflow.document.graph_view import GraphView, ViewEdge, ViewNode
    from weft.workflow.flow import Expression, Flow, Handle
    from weft.workflow.flow.load import check, load, loads
    from weft.workflow.flow.python_values import literal
    from weft.workflow.runtime.models.factory import Models, ModelSource
    from weft.workflow.runtime.results.result import FlowResult
    from weft.workflow.runtime.run import FlowRun

_NAMES = {
    "weft.workflow.document": "WorkflowDocument json_schema",
    "weft.workflow.document.graph_view": "GraphView ViewEdge ViewNode",
    "weft.workflow.flow": "Expression Flow Handle",
    "weft.workflow.flow.load": "check load loads",
    "weft.workflow.flow.python_values": "literal",
    "weft.workflow.runtime.models.factory": "ModelSource Models",
    "weft.workflow.runtime.results.result": "FlowResult",
    "weft.workflow.runtime.run": "FlowRun",
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
    "check",
    "json_schema",
    "literal",
    "load",
    "loads",
]

__getattr__, __dir__ = lazy_names(__name__, _NAMES)
