"""The key of the page, and the middleware that checks requests.

Other programs and web pages on this machine must neither read runs nor act on them. Requests below
`/api` need the key in a header that no foreign page can send, and the host has to be ours, against
DNS rebinding. There is no cookie: cookies are sent to every port of a host.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.serving.ui.responses import UiRefusal, problem_of

_BYTES: Final = 24


class Key:
    """A random key, made anew with each server, and worthless after its end."""

    def __init__(self) -> None:
        self.text: Final = secrets.token_urlsafe(_BYTES)
        self._digest = _digest(self.text)

    def admits(self, authorization: str) -> bool:
        """Whether the header is `Authorization: Bearer KEY`; in constant time."""
        scheme, _, key = authorization.partition(" ")
        fits = hmac.compare_digest(_digest(key.strip()), self._digest)
        return fits and scheme.lower() == "bearer"


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_OURS: Final = frozenset(("same-origin", "none"))
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types weft"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


class UiMiddleware:
    """ASGI middleware of a server on `port` of this machine."""

    def __init__(self, app: ASGIApp, key: Key, port: int) -> None:
        self._app = app
        self._key = key
        self._hosts = frozenset(f"{name}:{port}" for name in _NAMES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            self._check(scope["path"], Headers(scope=scope))
        except UiRefusal as refused:
            await problem_of(refused)(scope, receive, sending)
        else:
            await self._app(scope, receive, sending)

    def _check(self, path: str, headers: Headers) -> None:
        host = headers.get("host", "").lower()
        if host not in self._hosts:
            raise UiRefusal(403, "this page is for its own machine: call it 127.0.0.1 or localhost")
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            raise UiRefusal(403, "other web pages may not use this one")
        if path.startswith("/api/"):
            if headers.get("sec-fetch-site", "none") not in _OURS:
                raise UiRefusal(403, "other web pages may not use this one")
            if not self._key.admits(headers.get("authorization", "")):
                hint = "open the address that `weft ui` has printed"
                raise UiRefusal(401, "the key is missing, or of another server", hint)
