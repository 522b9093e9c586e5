"""Looking at real processes and ports from a test: polling with a deadline, never a fixed sleep."""

from __future__ import annotations

import json
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar

from weft.serving.vllm.supervise.processes import marked
from weft.serving.vllm.supervise.registry import ServingEntry

DEADLINE_S = 120.0
T = TypeVar("T")


def until(found: Callable[[], T], what: str) -> T:
    """Wait until `found()` is true; its value."""
    deadline = time.monotonic() + DEADLINE_S
    while not (value := found()):
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)
    return value


def processes_of(serving: str) -> list[int]:
    return [process.pid for process, mark in marked() if mark.serving == serving]


def ask(url: str, path: str = "/v1/models") -> dict[str, Any]:
    """What the fake engine says; empty when it does not answer."""
    try:
        with urllib.request.urlopen(url.removesuffix("/v1") + path, timeout=30) as answer:
            return dict(json.load(answer))
    except (OSError, urllib.error.URLError, ValueError):
        return {}


def port_of(url: str) -> int:
    return int(url.removesuffix("/v1").rpartition(":")[2])


def free(port: int) -> bool:
    """Whether nobody listens on a port and nobody holds it."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return _only_time_wait(port)
    return True


def _only_time_wait(port: int) -> bool:
    """Closed connections may keep a port from strict binding for a minute; that is nobody's."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def nothing_left(entry: ServingEntry) -> None:
    """Wait until no process of a serving is there and its ports are free."""
    until(lambda: not processes_of(entry.id), f"the end of {processes_of(entry.id)}")
    for replica in entry.replicas:
        if replica.url:
            until(lambda url=replica.url: free(port_of(url)), f"{replica.url} is free")


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
