"""Names and addresses of hosts: which are loopback, and how this machine reaches its servers."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def reachable(host: str) -> str:
    """The host, fit for a URL, by which this machine reaches a server that listens on `host`."""
    if host in ("0.0.0.0", ""):  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host
