"""One call over the network: sent, perhaps led elsewhere, perhaps repeated.

Knows what may be repeated and where a key may go; not what an answer means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urljoin

from weft.agents.foreign import shown
from weft.agents.openapi.address import origin_of
from weft.agents.openapi.network import Connections, HttpAnswer, HttpRequest, NotReached
from weft.agents.openapi.operation import READING
from weft.agents.openapi.options import OpenApiOptions
from weft.core.errors import BuildError, ToolRaised
from weft.core.ports import Clock

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PASSING: Final = frozenset({429, 502, 503, 504})
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_ANYWHERE: Final = frozenset({"accept"})
"""Headers that go to another server as well: nothing of ours is in them."""


class Exchange:
    """Sends requests within the bounds of `options`."""

    def __init__(self, connections: Connections, options: OpenApiOptions, clock: Clock) -> None:
        self._connections = connections
        self._options = options
        self._clock = clock

    async def answer(self, request: HttpRequest, *, repeatable: bool = False) -> HttpAnswer:
        """The last answer, which is no redirect.

        Repeats what is `repeatable`, after the delay that the server asks for.
        Raises: `ToolRaised`, `ToolLimitError`.
        """
        attempts = 1 + (self._options.retries if repeatable else 0)
        for attempt in range(attempts):
            last = attempt == attempts - 1
            pause_s = _FIRST_PAUSE_S * 2**attempt
            try:
                found = await self._followed(request)
            except NotReached as error:
                if last or not error.error.retryable:
                    raise error.error from error.__cause__
            except ToolRaised as error:
                error.retryable = error.retryable and repeatable
                if last or not error.retryable:
                    raise
            else:
                wanted_s = self._wanted_s(found)
                if found.status not in _PASSING or last or (wanted_s or 0) > _LONGEST_PAUSE_S:
                    return found
                pause_s = pause_s if wanted_s is None else wanted_s
            await self._clock.sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    async def _followed(self, request: HttpRequest) -> HttpAnswer:
        for _ in range(self._options.redirects + 1):
            found = await self._connections.send(request, self._options.max_bytes)
            if found.status not in _REDIRECTS or "location" not in found.headers:
                return found
            request = _led(request, found.headers)
        raise ToolRaised(f"the server redirects more than {self._options.redirects} times")

    def _wanted_s(self, answer: HttpAnswer) -> float | None:
        """The delay that the server asks for, in seconds, or None."""
        text = answer.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdecimal():
            return float(text[:9])
        try:
            return max(0.0, (parsedate_to_datetime(text) - self._clock.wall()).total_seconds())
        except (TypeError, ValueError, OverflowError):
            return None


def _led(request: HttpRequest, headers: Mapping[str, str]) -> HttpRequest:
    """The request that a redirect asks for; a key does not leave its server.

    Raises: `ToolRaised`.
    """
    where = shown(headers["location"].partition("?")[0], 100)
    if request.method not in READING:
        raise ToolRaised(f"the server redirects a {request.method} to {where}")
    here = f"{request.origin.scheme}://{request.origin.authority}{request.target}"
    try:
        origin, parts = origin_of(urljoin(here, headers["location"]))
    except (BuildError, ValueError) as error:
        raise ToolRaised(f"the server redirects to {where}, which is no address") from error
    if request.origin.scheme == "https" and origin.scheme != "https":
        raise ToolRaised(f"the server redirects to {where}, which is not encrypted")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if origin == request.origin:
        return replace(request, target=target)
    kept = {name: text for name, text in request.headers.items() if name.lower() in _ANYWHERE}
    return HttpRequest(request.method, origin, target, kept)
