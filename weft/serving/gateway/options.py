"""How a gateway is run, as opposed to what it serves."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from weft.core.errors import SpecError
from weft.serving.gateway.keys import Keys

_COUNTS = ("max_concurrent", "max_body_bytes", "max_choices", "max_messages")
_TIMES = (
    "timeout_s",
    "keep_alive_s",
    "header_timeout_s",
    "body_timeout_s",
    "write_timeout_s",
    "idle_timeout_s",
)


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """Address, keys and limits. Sizes are in bytes, times in seconds.

    port              0 lets the system choose
    keys              clients must show one of these; needed wherever others can reach the host
    max_concurrent    answers under way at once; each choice of a request counts as one
    max_waiting       requests that wait for a place; further ones are told to come back
    max_body_bytes    the largest request
    max_choices       the largest `n` of a request
    max_messages      the longest conversation
    timeout_s         the longest answer, waiting included; a client may ask for less
    drain_s           how long the end waits for the answers under way
    keep_alive_s      a stream that is silent for so long gets a comment, so that nobody hangs up
    header_timeout_s  how long a client may take to send its headers
    body_timeout_s    ... to send its body
    write_timeout_s   ... to take a piece of the answer
    idle_timeout_s    how long a connection may stay open between requests
    origins           web pages' origins that may use the gateway; by default none
    """

    host: str = "127.0.0.1"
    port: int = 8080
    keys: Keys | None = None
    max_concurrent: int = 64
    max_waiting: int = 256
    max_body_bytes: int = 4 * 1024 * 1024
    max_choices: int = 16
    max_messages: int = 2000
    timeout_s: float = 600.0
    drain_s: float = 30.0
    keep_alive_s: float = 10.0
    header_timeout_s: float = 20.0
    body_timeout_s: float = 30.0
    write_timeout_s: float = 60.0
    idle_timeout_s: float = 30.0
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise SpecError(f"`{name}` is {getattr(self, name)}", hint="it counts from 1")
        for name in _TIMES:
            if not 0 < getattr(self, name) < float("inf"):
                raise SpecError(f"`{name}` is {getattr(self, name)}", hint="give seconds above 0")
        if self.max_waiting < 0 or not 0 <= self.drain_s < float("inf"):
            raise SpecError("`max_waiting` and `drain_s` are 0 or more")
        if not 0 <= self.port <= 65535:
            raise SpecError(f"there is no port {self.port}", hint="0 lets the system choose")
        if "*" in self.origins:
            raise SpecError("any web page could use the gateway", hint="name the origins")
        if self.keys is None and not self.loopback:
            raise SpecError(
                f"others can reach {self.host or 'every address'}, and there are no keys",
                hint="set keys and name them with --api-key-env, or stay on 127.0.0.1",
            )

    @property
    def loopback(self) -> bool:
        """True when only this machine can reach the host."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
