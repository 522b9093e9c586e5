"""The most model calls that one run of a workflow makes, as far as the document says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft.core.errors import WeftError
from weft.engine.graph.node import MODEL_RETRY
from weft.workflow.compile.policy import retry_of
from weft.workflow.document.expressions import value_template
from weft.workflow.document.spec.document import bodies
from weft.workflow.document.spec.nodes import (
    BaseNode,
    Block,
    LoopNode,
    MapNode,
    ModelNode,
    WorkflowNode,
)
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.models.composed import is_composed


def call_bound(
    unit: Unit, inputs: Mapping[str, Any] | None = None, *, repetitions: bool = False
) -> int | None:
    """The most calls of a run with these `inputs`; None where no number follows from the document.

    Repairs and declared retries count; repetitions after lost connections only where `repetitions`
    says so: a node that declares no retry has them. Nothing follows for agents, strategies,
    composed models, workflows that run themselves, and maps over lists that a run makes.
    """
    again = MODEL_RETRY.attempts if repetitions else 1
    return _total(unit.document.nodes.values(), unit, inputs or {}, again)


def _total(
    steps: Iterable[BaseNode], unit: Unit, inputs: Mapping[str, Any], again: int
) -> int | None:
    found = [_bound(step, unit, inputs, again) for step in steps]
    return None if None in found else sum(filter(None, found))


def _bound(step: BaseNode, unit: Unit, inputs: Mapping[str, Any], again: int) -> int | None:
    """`again`: attempts of a model node that declares no retry."""
    retry = retry_of(step)
    attempts = 1 if retry is None else retry.attempts
    if isinstance(step, ModelNode):
        return _model_bound(step, unit, again if retry is None else attempts)
    if isinstance(step, WorkflowNode):
        if step.max_depth is not None:
            return None
        part = unit.includes.get(step.workflow)
        inner = None if part is None else call_bound(part, repetitions=again > 1)
        return None if inner is None else attempts * inner
    inside = _total(_steps_in(step), unit, inputs, again)
    if not inside:
        return inside
    times = step.max if isinstance(step, LoopNode) else 1
    if isinstance(step, MapNode):
        count = _length(step.over, inputs)
        if count is None:
            return None
        times = count
    return attempts * times * inside


def _model_bound(step: ModelNode, unit: Unit, attempts: int) -> int | None:
    if step.think is not None or step.agent is not None or is_composed(unit, step.model):
        return None
    checked = step.output_schema is not None or bool(step.tools)
    return attempts * (1 + step.repair * checked) * (step.samples or 1)


def _steps_in(step: BaseNode) -> list[BaseNode]:
    found: list[BaseNode] = []
    for inside in bodies(step):
        body = inside.body
        found += body.nodes.values() if isinstance(body, Block) else [body]
    return found


def _length(over: Any, inputs: Mapping[str, Any]) -> int | None:
    """The number of items of a list that only inputs decide."""
    parsed = value_template(over)
    if not parsed.names <= inputs.keys():
        return None
    try:
        return len(parsed.render(inputs))
    except (WeftError, TypeError):
        return None
