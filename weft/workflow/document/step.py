"""What every node can say, whatever it does: when it runs, and what happens when it fails."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from weft.workflow.document.part import Name, Names, Part, Template, Value
from weft.workflow.document.quantity import Duration
from weft.workflow.document.settings import BudgetSpec, Cache, Retry


class Step(Part):
    """The common part of all nodes."""

    kind: ClassVar[str] = ""

    description: str | None = Field(default=None, description="One sentence for people.")
    when: Template | None = Field(
        default=None, description="The node, and what needs it, is left out unless this is true."
    )
    after: Names = Field(
        default_factory=list, description="Nodes to wait for without using their values."
    )
    retry: Retry | None = Field(default=None, description="Repeat it when its error may go away.")
    timeout: Duration | None = Field(
        default=None, description="The longest that one attempt may take."
    )
    fallback: Name | None = Field(
        default=None,
        description="The node that runs in its place when it fails; it runs only then.",
    )
    default: Value = Field(default=None, description="Its value when it (and its fallback) fails.")
    on_failure: Literal["fail", "skip"] = Field(
        default="fail", description="skip: its failure does not count as a failure of the run."
    )
    cache: Cache | None = Field(default=None, description="Reuse the result for equal inputs.")
    budget: BudgetSpec | None = Field(
        default=None, description="What it, and all inside it, may spend."
    )
    degrade: Name | None = Field(
        default=None, description="The node that runs in its place once a budget is spent."
    )
    weight: float = Field(
        default=1.0,
        gt=0,
        description="How long it is expected to take; the longest path goes first.",
    )

    @model_serializer(mode="wrap")
    def _own_first(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What the node does, before what happens around it."""
        fields: dict[str, Any] = dump(self)
        common = {key: value for key, value in fields.items() if key in Step.model_fields}
        own = {key: value for key, value in fields.items() if key not in common}
        return {**own, **common}

    @property
    def has_default(self) -> bool:
        """True when a default is given, even if it is null."""
        return "default" in self.model_fields_set
