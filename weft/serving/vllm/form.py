"""A `ServeSpec` as plain JSON data and back. Checks shapes, for a file may be anybody's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from weft.core.values import DecodeSpec, Lossless, Lossy
from weft.serving.vllm.spec import ServeSpec

_FIELDS = tuple(field.name for field in fields(ServeSpec))


def to_form(spec: ServeSpec) -> dict[str, Any]:
    """Plain data that JSON can hold. No secrets: of a key it names the variable alone."""
    form = {name: getattr(spec, name) for name in _FIELDS}
    form["adapters"] = dict(spec.adapters)
    form["decode"] = {
        "lossless": isinstance(spec.decode, Lossless),
        "method": spec.decode.method,
        "options": [list(option) for option in spec.decode.options],
    }
    form["extra"] = list(spec.extra)
    return form


def from_form(form: Mapping[str, Any]) -> ServeSpec:
    """The inverse of `to_form`. Raises: `ValueError`, `TypeError`, `KeyError`, `SpecError`."""
    if unknown := form.keys() - set(_FIELDS):
        raise ValueError(f"unknown fields: {', '.join(sorted(unknown))}")
    given = dict(form)
    given["decode"] = _decode(form["decode"])
    given["extra"] = tuple(str(word) for word in form["extra"])
    given["adapters"] = {str(name): str(path) for name, path in form["adapters"].items()}
    return ServeSpec(**given)


def _decode(form: Mapping[str, Any]) -> DecodeSpec:
    kind = Lossless if form["lossless"] else Lossy
    return kind(str(form["method"]), tuple((str(name), value) for name, value in form["options"]))
