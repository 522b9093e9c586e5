"""What a document says about an agent, as its options."""

from __future__ import annotations

from typing import Any

from weft.agents.agent import AgentOptions
from weft.planner.grammar.limits import GrammarLimits
from weft.workflow.document.agent import AgentSpec
from weft.workflow.document.leaves import ModelNode


def options_of(step: ModelNode, spec: AgentSpec, instructions: str = "") -> AgentOptions:
    """What `step` and its `spec` say; the rest stays as `AgentOptions` has it."""
    said: dict[str, Any] = {
        "rounds": spec.rounds,
        "calls": spec.calls,
        "constrain": spec.constrain,
        "grammar": _limits(spec),
        "schema": step.output_schema,
        "temperature": step.temperature,
        "max_tokens": step.max_tokens,
    }
    given = {name: value for name, value in said.items() if value is not None}
    return AgentOptions(**given, instructions=instructions)


def _limits(spec: AgentSpec) -> GrammarLimits | None:
    if spec.grammar is None:
        return None
    return GrammarLimits(**spec.grammar.model_dump(exclude_none=True))
