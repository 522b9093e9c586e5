"""What every node can say, whatever it does: when it runs, and what happens when it fails."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

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

    @property
    def has_default(self) -> bool:
        """True when a default is given, even if it is null."""
        return "default" in self.model_fields_set
