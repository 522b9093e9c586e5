"""Media types of bodies. Reads no body."""

from __future__ import annotations


def kind_of(media: str) -> str:
    """The type without its parameters, in lower case: `application/json`."""
    return media.partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    """True for `application/json`, `application/problem+json; charset=utf-8` and their like."""
    kind = kind_of(media)
    return kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )
