"""Which servers can be described, and which descriptions are refused with a remedy."""

from __future__ import annotations

from typing import Any

import pytest

from weft.agents.mcp import McpServer
from weft.core.errors import BuildError

COMMAND = ("server", "argument")


@pytest.mark.parametrize(
    "given",
    [
        {"command": COMMAND, "env_from": ("TOKEN",)},
        {"url": "http://127.0.0.1:8000/mcp", "api_key_env": "KEY"},
        {"url": "http://localhost/mcp", "headers_from": {"x-key": "KEY"}},
        {"url": "http://example.org/mcp"},
        {"url": "https://example.org/mcp", "api_key_env": "KEY"},
    ],
)
def test_what_can_be_tried(given: dict[str, Any]) -> None:
    McpServer("s", **given)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "a command or a url"),
        ({"command": COMMAND, "url": "http://localhost"}, "a command or a url"),
        ({"command": COMMAND, "api_key_env": "KEY"}, "no HTTP headers"),
        ({"url": "http://localhost", "env_from": ("A",)}, "no environment"),
        ({"url": "ftp://localhost"}, "not an http address"),
        ({"url": "localhost:8000"}, "not an http address"),
        ({"url": "http://"}, "not an http address"),
        ({"url": "http://[::1"}, "not an http address"),
        ({"url": "http://localhost:99999"}, "not an http address"),
        ({"url": "https://me:secret@example.org"}, "do not belong in a url"),
        ({"url": "http://example.org", "api_key_env": "KEY"}, "unencrypted"),
        ({"url": "http://10.0.0.1", "headers_from": {"a": "KEY"}}, "unencrypted"),
        ({"command": COMMAND, "timeout_s": 0.0}, "timeout_s must be positive"),
        ({"command": COMMAND, "timeout_s": float("nan")}, "timeout_s must be positive"),
        ({"command": COMMAND, "restarts": -1}, "restarts"),
    ],
)
def test_what_cannot(given: dict[str, Any], why: str) -> None:
    with pytest.raises(BuildError, match=why) as raised:
        McpServer("s", **given)
    assert "secret" not in str(raised.value)
