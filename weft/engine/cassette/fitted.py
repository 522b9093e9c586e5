"""Wrappers that have the optional ports of what they wrap, and no others.

Who looks with `isinstance` whether a client tokenizes must not be told so by a wrapper of one that
does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any


def fitted(kind: type, ports: Mapping[type, type], inner: object) -> type:
    """`kind` with the methods that `ports` gives for each port that `inner` has."""
    return with_ports(kind, tuple(own for port, own in ports.items() if isinstance(inner, port)))


@cache
def with_ports(kind: type[Any], ports: tuple[type, ...]) -> type[Any]:
    """`kind` with the methods of `ports`; the same class for the same ports."""
    return type(kind.__name__, (*ports, kind), {"__module__": kind.__module__}) if ports else kind
