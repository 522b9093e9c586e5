"""Address and credentials of a model's endpoint, and its price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SHORTEST_SECRET = 6


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address and how to talk to it. Its repr shows no credentials.

    Raises: `ValueError` for a `base_url` that is no plain http(s) address.
    """

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    api_key_env: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 300.0
    connections: int = 128
    cache_salt: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("base_url must look like http://host:port/v1")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("base_url holds an address only; give credentials as api_key, headers")

    def url(self, path: str) -> str:
        """The address of an API path such as `models`."""
        return f"{self.base_url.rstrip('/')}/{path}"

    def root_url(self, path: str) -> str:
        """The address of a path outside the API, such as `metrics`."""
        return f"{self.base_url.rstrip('/').removesuffix('/v1')}/{path}"

    @property
    def loopback(self) -> bool:
        """True for this machine itself, which is reached without a proxy."""
        return urlsplit(self.base_url).hostname in _LOOPBACK

    def redact(self, text: str) -> str:
        """`text` without control characters and without credentials that a server may echo."""
        for secret in (self.api_key or "", self.cache_salt or "", *self.headers.values()):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "***")
        return "".join(c if c.isprintable() else " " for c in text)


_PER = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. `cached` prices prompt tokens that the server had cached.

    None for `cached`: they cost as much as other prompt tokens.
    """

    prompt: float
    completion: float
    cached: float | None = None

    def money(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int) -> float:
        """The price of one call in dollars. `cached_tokens` are among the `prompt_tokens`."""
        cached = min(cached_tokens, prompt_tokens)
        cached_price = self.prompt if self.cached is None else self.cached
        fresh = (prompt_tokens - cached) * self.prompt
        return (fresh + cached * cached_price + completion_tokens * self.completion) / _PER
