"""Python values as a document holds them: handles become `{{ expressions }}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.core.budget import Budget
from weft.core.errors import BuildError
from weft.workflow.flow.handle import Expression, owner_of


def document_value(value: object, owner: object) -> Any:
    """`value` with every handle in it as text. Texts are templates, as in a file: see `literal`.

    Raises: `BuildError` for what a document cannot hold, or a handle of another flow.
    """
    if isinstance(value, Expression):
        if owner_of(value) is not owner:
            hint = "use the handles of one flow; run the other one with `flow.workflow(...)`"
            raise BuildError(f"{value!r} belongs to another flow", hint=hint)
        return str(value)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Budget):
        said = {"tokens": value.tokens, "time": value.seconds, "money": value.money}
        return {key: limit for key, limit in said.items() if limit is not None}
    if isinstance(value, Mapping):
        return {str(key): document_value(item, owner) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [document_value(item, owner) for item in value]
    raise BuildError(
        f"a workflow cannot hold {type(value).__name__}: {value!r}",
        hint="make it an input, or return it from a function (`flow.call`)",
    )


def literal(text: str) -> str:
    """`text` as a template that gives exactly `text`, whatever braces it holds."""
    if not any(mark in text for mark in ("{{", "{%", "{#")):
        return text
    return f"{{{{ {text!r} }}}}"
