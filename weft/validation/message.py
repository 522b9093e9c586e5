"""The wording of validation errors. Imports nothing of weft: the checking process uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jsonschema_rs import ValidationError, ValidationErrorKind

_KEPT: Final = 120
_UNIONS: Final = (ValidationErrorKind.AnyOf, ValidationErrorKind.OneOfNotValid)


def error_text(error: ValidationError) -> str:
    """`at a[1]: "x" is not of type "integer"`; without a place if the whole value is wrong."""
    kind = error.kind
    while isinstance(kind, _UNIONS):
        firsts = [branch[0] for branch in kind.context if branch]
        deepest = max(firsts, key=lambda one: len(one.instance_path), default=error)
        if len(deepest.instance_path) <= len(error.instance_path):
            return _placed(error.instance_path, _of_union(error, firsts))
        error, kind = deepest, deepest.kind
    return _placed(error.instance_path, error.message)


def _of_union(error: ValidationError, firsts: Sequence[ValidationError]) -> str:
    """The error of a union where no branch matched deeper than another."""
    types: list[str] = []
    for one in firsts:
        if not isinstance(one.kind, ValidationErrorKind.Type):
            return one.message  # the value has the type of this branch
        types += one.kind.types
    if not types:
        return error.message
    named = ", ".join(f'"{name}"' for name in dict.fromkeys(types))
    value, _, _ = firsts[0].message.rpartition(" is not of type")
    return f"{value} is not of types {named}"


def _placed(path: Sequence[str | int], message: str) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    place = _shown("".join(steps).lstrip("."))
    shown = _shown(message)
    return f"at {place}: {shown}" if place else shown


def _shown(text: str) -> str:
    """`text` in one line; a long one is cut in the middle: it begins with the value and ends with
    the reason.
    """
    if len(text) > 2 * _KEPT:
        text = f"{text[:_KEPT]}...{text[-_KEPT:]}"
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
