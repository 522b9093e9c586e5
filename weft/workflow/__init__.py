"""YAML and Python programs, and how they become graphs; picks models, tools and stores.

load(path) -> Flow             a workflow file; every defect raises one `SourceError`
loads(text, file=...) -> Flow  the same for text
Flow(name, ...)                a workflow in Python; see its methods
json_schema() -> dict          the schema of workflow files, for editors
Models()                       model clients to share between several runs
"""

from weft.workflow.document import Document, json_schema
from weft.workflow.flow import Expression, Flow, Handle
from weft.workflow.flow.flow import load, loads
from weft.workflow.flow.values import literal
from weft.workflow.models import Models, ModelSource
from weft.workflow.result import FlowResult
from weft.workflow.run import FlowRun
from weft.workflow.view import GraphView, ViewEdge, ViewNode

__all__ = [
    "Document",
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
    "json_schema",
    "literal",
    "load",
    "loads",
]
