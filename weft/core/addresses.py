"""Hosts of this machine, judged by their text."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether `host` is `localhost` or a loopback address; resolves no name."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
