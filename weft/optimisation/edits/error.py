"""The error of an edit that does not fit its document."""

from __future__ import annotations

from weft.core.errors import BuildError


class EditError(BuildError):
    """A typed edit does not fit its document. `edit` is the edit's name, `node` the node's."""

    def __init__(
        self, message: str, *, edit: str, node: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint, node=node)
        self.edit = edit

    def __str__(self) -> str:
        return f"{self.edit}: {super().__str__()}"
