"""Policy for the addresses of connections. Resolves no names."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from weft.agents.openapi.options import Network
from weft.agents.untrusted import printable
from weft.core.errors import BuildError
from weft.core.hosts import is_loopback

_PORTS: Final = {"http": 80, "https": 443}
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_UNICAST: Final = ipaddress.ip_network("2000::/3")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class ServerOrigin:
    """Scheme, host (lower case, without brackets) and port of a server."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port for the `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether the text is a name or address of this machine."""
        return is_loopback(self.host)


def origin_of(url: str) -> tuple[ServerOrigin, SplitResult]:
    """The origin and the parts of an absolute URL. Raises: `BuildError`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BuildError(f"{printable(url, 100)!r} is no address: {error}") from error
    clean = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in _PORTS or not host or not clean:
        hint = "such as https://api.example.com/v1"
        raise BuildError(f"{printable(url, 100)!r} is no address of a server", hint=hint)
    if parts.username is not None or parts.password is not None:
        hint = "put the key into an environment variable and name it in `auth_env`"
        raise BuildError("a user or a password does not belong into an address", hint=hint)
    return ServerOrigin(parts.scheme, host, port or _PORTS[parts.scheme]), parts


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Allows public addresses, and at `home` also those of `private` networks."""

    home: ServerOrigin
    private: tuple[Network, ...] = ()

    def allows(self, address: str, host: str, port: int) -> bool:
        """Whether `address`, to which `host` was resolved, may be connected to."""
        try:
            found = ipaddress.ip_address(address)
        except ValueError:  # an address with a zone is link-local
            return False
        if is_public(found):
            return True
        at_home = (host, port) == (self.home.host, self.home.port)
        return at_home and any(found in network for network in self.private)


def is_public(address: Address) -> bool:
    """Whether `address` is public, also when it embeds an IPv4 address."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None or address not in _UNICAST:
            return False
    return address.is_global and not address.is_multicast
