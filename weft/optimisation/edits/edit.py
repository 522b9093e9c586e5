"""The base of all typed edits: a pure function of a document, and its form as JSON."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from pydantic import Field

from weft.optimisation.edits.draft import DocumentDraft
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.spec.fields import SpecPart


class Edit(SpecPart):
    """One change of a document. Two edits are equal when they are of one kind, with equal fields.

    `node`: the address of a node: its name, and inside of bodies `notes/draft`; a body that is one
    node without a name is `notes/do`, `refine/loop`, or `route/CASE`.
    """

    edit: str
    node: str = Field(description="The address of the node.", min_length=1)

    def apply(self, document: WorkflowDocument) -> WorkflowDocument:
        """The changed document; `document` stays as it is.

        Checks the structure; `Patch.apply` makes all checks of `weft check`. Raises: `EditError`.
        """
        draft = DocumentDraft(document, self.edit)
        self.change(draft)
        return draft.document()

    @abstractmethod
    def change(self, draft: DocumentDraft) -> None:
        """Change `draft` in place. Raises: `EditError`."""

    def plain(self) -> dict[str, Any]:
        """The edit as JSON data, which `read_edits` reads."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True) | {"edit": self.edit}
