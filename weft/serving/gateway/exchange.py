"""One request and its response, as logs and metrics see it. Holds no content and no key."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.types import Scope

_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")
_KEY = "weft.exchange"


@dataclass(slots=True)
class Exchange:
    """`status` is 0 until the response begins; `error` says for ourselves what went wrong.

    `model` is one that is served, or empty. `runs` are the ids of those behind the answer that are
    recorded. `gone`: the client hung up before the end.
    """

    id: str
    method: str
    path: str
    model: str = ""
    status: int = 0
    error: str = ""
    gone: bool = False
    started_s: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0
    runs: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True when the response is whole and not an error."""
        return self.status < 400 and not self.error and not self.gone

    def elapsed_s(self) -> float:
        """Seconds since the request's headers came."""
        return time.perf_counter() - self.started_s

    @classmethod
    def of(cls, scope: Scope) -> Exchange:
        """The exchange of a request that has come through the door."""
        found: Exchange = scope[_KEY]
        return found

    @classmethod
    def begin(cls, scope: Scope, wanted_id: str | None) -> Exchange:
        """A new one; it takes the client's own id where that is harmless."""
        fits = wanted_id is not None and _ID.match(wanted_id)
        request_id = wanted_id if wanted_id and fits else f"req_{uuid.uuid4().hex}"
        found = cls(request_id, scope["method"], scope["path"])
        scope[_KEY] = found
        return found


Report = Callable[[Exchange], None]
"""Told of every exchange that has ended, health checks and metrics excepted."""
