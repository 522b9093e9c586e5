"""Checks of a workflow's `evaluation` against its inputs, outputs, models and nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weft.core.errors import UnknownReference
from weft.workflow.document.defect_log import DefectLog
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.unit import Unit

_NODES = ("prepare", "check", "tear_down")


def check_evaluation(unit: Unit, log: DefectLog) -> None:
    """Find names in the `evaluation` that the workflow lacks; `log` has them all."""
    for kind, name, known, path in _names(unit):
        if name not in known:
            hint = choice_hint(name, list(known)) or f"the workflow has no {kind}s"
            with log:
                error = UnknownReference(f"there is no {kind} `{name}`", hint=hint)
                unit.fail(error, ("evaluation", *path))


def _names(unit: Unit) -> Iterator[tuple[str, str, Iterable[str], KeyPath]]:
    """The kind and the name of each reference, what there is of that kind, and its place."""
    document, spec = unit.document, unit.document.evaluation
    if spec is None:
        return
    for name in () if spec.data is None else spec.data.inputs:
        yield "input", name, document.inputs, ("data", "inputs", name)
    for metric, given in spec.metrics.items():
        if given.output is not None:
            yield "output", given.output, document.outputs, ("metrics", metric, "output")
        if given.model is not None and given.model.isidentifier():
            yield "model", given.model, document.models, ("metrics", metric, "model")
    for key in _NODES:
        if (node := getattr(spec, key)) is not None:
            yield "node", node, document.nodes, (key,)
