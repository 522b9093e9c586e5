"""Which diffusion models, and which parts for them, can be trained. Loaded when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

from weft.core.errors import InputError
from weft.decoding.diffusion.train.order import Kind

_HERE: Final = "weft.decoding.diffusion.train."
KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "block": "block.conversion",
        "dparallel": "certain.session",
        "learn2pd": "learnt_filter.session",
        "list": "lists.session",
    }
)
"""By name: the module, which has `KIND`."""


def kind_of(name: str) -> Kind:
    """The kind of that name. Raises: `InputError` with those there are."""
    if name not in KINDS:
        there = ", ".join(sorted(KINDS))
        raise InputError(f"no diffusion model {name!r} can be trained", hint=f"one of {there}")
    kind: Kind = import_module(_HERE + KINDS[name]).KIND
    return kind
