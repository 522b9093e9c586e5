"""One node that was written in Python, checked as a node of a file is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from weft.core.errors import BuildError
from weft.workflow.document.spec.defects import first_defect
from weft.workflow.document.spec.nodes import KINDS, BaseNode, NodeSpec

_NODES: TypeAdapter[NodeSpec] = TypeAdapter(NodeSpec, config=ConfigDict(defer_build=True))


def checked_node(raw: Mapping[str, Any], name: str) -> BaseNode:
    """The node of the keys in `raw`. Raises: `BuildError`."""
    try:
        step: BaseNode = _NODES.validate_python(raw)
    except ValidationError as error:
        defect = first_defect(error, {"nodes": {name: raw}}, ("nodes", name))
        raise BuildError(defect.message, hint=defect.hint, node=name) from error
    assert isinstance(step, KINDS)
    return step
