"""The words for what a validator found. Imports nothing of weft: the checking process uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jsonschema_rs import ValidationError, ValidationErrorKind

_KEPT: Final = 120
_UNIONS: Final = (ValidationErrorKind.AnyOf, ValidationErrorKind.OneOfNotValid)


def error_text(error: ValidationError) -> str:
    """`at a[1]: "x" is not of type "integer"`; without a place where the whole value is meant."""
    kind = error.kind
    while isinstance(kind, _UNIONS):
        firsts = [branch[0] for branch in kind.context if branch]
        deepest = max(firsts, key=lambda one: len(one.instance_path), default=error)
        if len(deepest.instance_path) <= len(error.instance_path):
            return _placed(error.instance_path, _of_union(error, firsts))
        error, kind = deepest, deepest.kind
    return _placed(error.instance_path, error.message)


def _of_union(error: ValidationError, firsts: Sequence[ValidationError]) -> str:
    """What to say where no branch of a union came further than another."""
    types: list[str] = []
    for one in firsts:
        if not isinstance(one.kind, ValidationErrorKind.Type):
            return one.message  # the value has the type of this branch
        types += one.kind.types
    if not types:
        return error.message
    named = ", ".join(f'"{name}"' for name in dict.fromkeys(types))
    said, _, _ = firsts[0].message.rpartition(" is not of type")
    return f"{said} is not of types {named}"


def _placed(path: Sequence[str | int], message: str) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    place = _shown("".join(steps).lstrip("."))
    said = _shown(message)
    return f"at {place}: {said}" if place else said


def _shown(text: str) -> str:
    """`text` in one line; of a long one the beginning, which is the value, and the reason."""
    if len(text) > 2 * _KEPT:
        text = f"{text[:_KEPT]}...{text[-_KEPT:]}"
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
