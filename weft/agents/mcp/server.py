"""The address and limits of an MCP server. Starts nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from weft.agents.untrusted import Effects, Secrets
from weft.core.errors import BuildError
from weft.core.hosts import is_loopback

_MIB: Final = 1024 * 1024
_TIMES: Final = ("timeout_s", "start_timeout_s")
_COUNTS: Final = ("max_result_bytes", "max_tools")


@dataclass(frozen=True, slots=True)
class McpServer:
    """A program to start (`command`, over its stdin and stdout), or an address (`url`).

    name              the name in messages
    env_from          names of environment variables for the program; all others, secrets included,
                      are withheld, except for PATH, HOME, the locale and the like
    headers_from      HTTP headers, each with the name of the variable that holds its value
    api_key_env       the variable whose value is sent as `Authorization: Bearer ...`
    folder            the working directory of the program
    only              the names of the tools to use; empty: all
    timeout_s         the limit of a call; `start_timeout_s`: until it has listed its tools
    restarts          how often in a row it is started, or connected to, again after failures
    max_result_bytes  the largest result, measured as JSON
    effects           the effects of its tools, by tool, or under "" for all others; by default the
                      server's own hints

    Raises: `BuildError`.
    """

    name: str = "mcp"
    command: tuple[str, ...] = ()
    url: str | None = None
    env_from: tuple[str, ...] = ()
    headers_from: Mapping[str, str] = field(default_factory=dict)
    api_key_env: str | None = None
    folder: Path | None = None
    only: tuple[str, ...] = ()
    timeout_s: float = 60.0
    start_timeout_s: float = 60.0
    restarts: int = 3
    max_result_bytes: int = 16 * _MIB
    max_tools: int = 500
    effects: Effects = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.command) == (self.url is not None):
            hint = "command: [program, argument], or url: http://..."
            raise BuildError(f"{self.name}: an MCP server has a command or a url", hint=hint)
        if self.command and os.name != "posix":
            hint = "run the server yourself, and give its url"
            raise BuildError(f"{self.name}: to start a server needs a POSIX system", hint=hint)
        if self.command and (self.headers_from or self.api_key_env):
            hint = "pass variables to a program with env_from"
            raise BuildError(f"{self.name}: a program gets no HTTP headers", hint=hint)
        if self.url is not None:
            self._check_url(self.url)
        for name in (*_TIMES, *_COUNTS):
            if not 0 < getattr(self, name) < float("inf"):
                raise BuildError(f"{self.name}: {name} must be positive")
        if self.restarts < 0:
            raise BuildError(f"{self.name}: restarts must be 0 or more")

    def _check_url(self, url: str) -> None:
        if self.env_from:
            hint = "send values of variables with headers_from or api_key_env"
            raise BuildError(f"{self.name}: an address gets no environment", hint=hint)
        parsed = _split(url)
        if parsed is None or parsed.scheme not in ("http", "https") or not parsed.hostname:
            hint = "http://127.0.0.1:8000/mcp, for example"
            raise BuildError(f"{self.name}: the url is not an http address", hint=hint)
        if parsed.username is not None or parsed.password is not None:
            hint = "name the variable that holds the key with api_key_env"
            raise BuildError(f"{self.name}: keys do not belong in a url", hint=hint)
        secret = self.headers_from or self.api_key_env
        if secret and parsed.scheme == "http" and not self.loopback:
            hint = "use https, or an address of this machine"
            raise BuildError(f"{self.name}: a key would be sent unencrypted", hint=hint)

    @property
    def loopback(self) -> bool:
        """Whether the address is one of this machine."""
        parsed = _split(self.url or "")
        return parsed is not None and is_loopback(parsed.hostname or "")

    @property
    def max_message_bytes(self) -> int:
        """The largest message: it contains a result as structure and again as text."""
        return 2 * self.max_result_bytes + _MIB

    def secrets(self) -> Secrets:
        """The values of the named variables. Raises: `BuildError` when one is not set."""
        named = (*self.env_from, *self.headers_from.values())
        return Secrets((*named, self.api_key_env) if self.api_key_env else named)


def _split(url: str) -> SplitResult | None:
    try:
        parsed = urlsplit(url)
        _ = parsed.port
    except ValueError:
        return None
    return parsed
