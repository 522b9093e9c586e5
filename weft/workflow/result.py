"""What a run of a workflow comes to: its outputs, and why some are missing. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weft.core.errors import WeftError
from weft.core.events import Outcome, RunStatus
from weft.core.ids import NodeId, RunId
from weft.core.values import Usage
from weft.engine import RunResult
from weft.engine.effects import UnsettledEffect
from weft.workflow.document import Document
from weft.workflow.expressions import ValueTemplate, value_template


@dataclass(frozen=True, slots=True)
class FlowResult:
    """The end of a run.

    outputs    the outputs that could be computed, by name
    missing    for every other output, why it is not there
    outcomes   how every node ended, those that were made on the way too
    status     succeeded, partial, failed or cancelled; `reasons` say why in sentences
    unsettled  calls that must not be repeated and that a person has to judge, also of nodes that
               something stood in for
    """

    run: RunId
    status: RunStatus
    outputs: Mapping[str, Any]
    missing: Mapping[str, str]
    outcomes: Mapping[NodeId, Outcome]
    usage: Usage
    wall_s: float
    reasons: tuple[str, ...] = ()
    leaked: tuple[NodeId, ...] = field(default=())
    unsettled: tuple[UnsettledEffect, ...] = ()

    @classmethod
    def of(
        cls, result: RunResult, outputs: Mapping[str, Any], missing: Mapping[str, str]
    ) -> FlowResult:
        """What the engine says of a run, with its outputs."""
        return cls(
            result.run,
            result.status,
            outputs,
            missing,
            result.outcomes,
            result.usage,
            result.wall_s,
            result.reasons,
            result.leaked,
            result.unsettled,
        )

    @property
    def ok(self) -> bool:
        """True when the run succeeded and every output is there."""
        return self.status == "succeeded" and not self.missing

    def __getitem__(self, output: str) -> Any:
        """An output. Raises: `KeyError` that says why it is missing."""
        if output in self.missing:
            raise KeyError(f"{output}: {self.missing[output]}")
        return self.outputs[output]


def output_templates(document: Document) -> dict[str, ValueTemplate]:
    """The templates of a workflow's outputs, by name."""
    return {name: value_template(value) for name, value in document.outputs.items()}


def flow_result(
    templates: Mapping[str, ValueTemplate], inputs: Mapping[str, Any], result: RunResult
) -> FlowResult:
    """The outputs of a finished run, with everything the engine says of it."""
    values = dict(inputs)
    outputs: dict[str, Any] = {}
    missing: dict[str, str] = {}
    status, reasons = result.status, result.reasons
    for name, parsed in templates.items():
        for node in parsed.names - values.keys():
            outcome = result.outcomes.get(NodeId(node))
            if outcome is not None and outcome.ok:
                values[node] = outcome.value
        absent = sorted(parsed.names - values.keys())
        if absent:
            why = (_why(node, result.outcomes.get(NodeId(node))) for node in absent)
            missing[name] = "; ".join(why)
            continue
        try:
            outputs[name] = parsed.render(values)
        except WeftError as error:
            missing[name] = str(error)
            status = "failed" if status == "succeeded" else status
            reasons = (*reasons, f"the output {name} cannot be computed: {error.message}")
    return FlowResult.of(replace(result, status=status, reasons=reasons), outputs, missing)


def _why(node: str, outcome: Outcome | None) -> str:
    if outcome is None:
        return f"{node} did not run"
    if outcome.failure is None:
        return f"{node} was left out"
    return f"{node} {outcome.status}: {outcome.failure}"
