"""A person's answer against the schema of its question; an approval in the terms of approvals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from weft.core.questions import approval_parameters
from weft.core.values import JsonSchema
from weft.validation.compiled import violation

_FIELDS: Final = ("approve", "reason", "arguments")
_TO_CHANGE: Final = 'to change arguments, give all of them: {"approve": true, "arguments": {...}}'
_TO_REFUSE: Final = '{"approve": false, "reason": "..."} makes no call'


def answer_violation(answer: object, schema: JsonSchema) -> str | None:
    """Why a person's `answer` does not fit the `schema` of a question; None: it does.

    A yes with anything beside it but other arguments is refused: the call would be made without
    regard to it. Raises: `MachineBusy`.
    """
    parameters = approval_parameters(schema)
    if parameters is None or isinstance(answer, bool):
        return violation(answer, schema)
    if not isinstance(answer, Mapping):
        return f"an approval is true, false, or an object; {_TO_CHANGE}"
    unknown = [str(name) for name in answer if name not in _FIELDS]
    if unknown:
        return f"an approval has no field {unknown[0]!r}; {_TO_CHANGE}"
    approve, reason = answer.get("approve"), answer.get("reason", "")
    if not isinstance(approve, bool):
        return "`approve` is true or false"
    if not isinstance(reason, str):
        return "`reason` is a text"
    if approve and reason:
        return f"a yes has no `reason`, and would make the whole call; {_TO_CHANGE}; {_TO_REFUSE}"
    return _wrong_arguments(answer, parameters, schema) or violation(answer, schema)


def _wrong_arguments(
    answer: Mapping[str, Any], parameters: JsonSchema, schema: JsonSchema
) -> str | None:
    """Why the changed arguments do not fit the parameters of the tool."""
    if "arguments" not in answer:
        return None
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    why = violation(answer["arguments"], {**parameters, **definitions})
    return None if why is None else f"`arguments`: {why}; {_TO_CHANGE}"
