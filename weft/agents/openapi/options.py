"""Permissions and limits of calls of an API. Opens nothing."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from weft.agents.untrusted import Effects
from weft.core.errors import BuildError

_MIB: Final = 2**20
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class OpenApiOptions:
    """Permissions and limits of calls.

    base_url         the address of the API; by default that in its document
    auth_env         the environment variable with the key, or one for each security scheme. The
                     key is sent only to `base_url`, in the way that the document declares
    private          networks that are not public and may still be reached, such as 127.0.0.0/8;
                     only at `base_url`, never by a redirect
    timeout_s        seconds of a call with all its retries
    retries          retries of repeatable calls (GET, PUT, ...)
    redirects        redirects to follow, of GET and HEAD
    max_bytes        the limit of an answer
    connections      the limit of concurrent connections
    pure             declares the tools of GET and HEAD pure: equal arguments give equal results
    effects          the effects of operations, by operation, or under "" for all others. By
                     default GET and HEAD are pure; PUT, DELETE and operations with an
                     `Idempotency-Key` are idempotent; others are unknown
    """

    base_url: str | None = None
    auth_env: str | Mapping[str, str] | None = None
    private: tuple[str, ...] = ()
    timeout_s: float = 30.0
    retries: int = 2
    redirects: int = 3
    max_bytes: int = _MIB
    connections: int = 16
    pure: bool = False
    effects: Effects = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("timeout_s", "max_bytes", "connections"):
            if not getattr(self, name) > 0:
                raise BuildError(f"{name} must be positive, got {getattr(self, name)}")
        for name in ("retries", "redirects"):
            if getattr(self, name) < 0:
                raise BuildError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.auth_env is not None and self.base_url is None:
            raise BuildError(
                "`auth_env` needs `base_url`: a document alone must not say who gets the key",
                hint="give the address of the server that the key is for",
            )
        self.networks()

    def networks(self) -> tuple[Network, ...]:
        """`private`, parsed. Raises: `BuildError`."""
        try:
            return tuple(ipaddress.ip_network(text) for text in self.private)
        except ValueError as error:
            hint = "write a network or an address: 127.0.0.0/8, ::1"
            raise BuildError(f"private: {error}", hint=hint) from error
