"""Which drafters can be trained. Each is a module with `KIND`, loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

from weft.core.errors import InputError
from weft.decoding.speculative.train.kind import Kind

_HERE: Final = "weft.decoding.speculative.train."
KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dflash": "dflash",
        "eagle": "eagle",
        "hidden_transfer": "hidden_transfer",
        "lexical_units": "lexical_units",
        "medusa": "medusa",
        "pass": "pass_",
        "ppd": "ppd",
    }
)
"""By name: the module."""


def kind_of(name: str) -> Kind:
    """The kind of that name. Raises: `InputError` with those there are."""
    if name not in KINDS:
        there = ", ".join(sorted(KINDS))
        raise InputError(f"no drafter {name!r} can be trained", hint=f"one of {there}")
    kind: Kind = import_module(_HERE + KINDS[name]).KIND
    return kind
