"""Wrappers that have the optional ports of what they wrap, and no others.

Who looks with `isinstance` whether a client tokenizes must not be told so by a wrapper of one that
does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_MADE: Final[dict[tuple[type, tuple[type, ...]], type]] = {}


def fitted(kind: type, ports: Mapping[type, type], inner: object) -> type:
    """`kind` with the methods that `ports` gives for each port that `inner` has."""
    return with_ports(kind, tuple(own for port, own in ports.items() if isinstance(inner, port)))


def with_ports(kind: type, ports: tuple[type, ...]) -> type:
    """`kind` with the methods of `ports`; the same class for the same ports."""
    if not ports:
        return kind
    if (kind, ports) not in _MADE:
        _MADE[kind, ports] = type(kind.__name__, (*ports, kind), {"__module__": kind.__module__})
    return _MADE[kind, ports]
