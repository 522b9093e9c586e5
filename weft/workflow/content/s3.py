"""A content store in a bucket of an S3-compatible server. Needs the extra `s3`."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from weft.core.errors import ContentNotFound, StoreError
from weft.core.ports.content import (
    MAX_CONTENT_BYTES,
    ContentDigest,
    check_content_size,
    content_digest,
    digest_of_content,
    verified_content,
)

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

T = TypeVar("T")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_PREFIX: Final = re.compile(r"(?!\.\.?(/|$))[\w.=-]+(/(?!\.\.?(/|$))[\w.=-]+)*", re.ASCII)
_STATUS: Final = re.compile(r"status code: (\d{3})\b", re.ASCII)
_CLIENT: Final[ClientConfig] = {
    "allow_http": True,  # used where AWS_ENDPOINT_URL says http
    "connect_timeout": timedelta(seconds=5),
    "timeout": timedelta(seconds=120),
}
_RETRY: Final[RetryConfig] = {"max_retries": 5, "retry_timeout": timedelta(seconds=20)}
_KEYS: Final = "are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY those of this server?"
_REACH: Final = "is the server up, and are AWS_ENDPOINT_URL and AWS_REGION right?"


class S3ContentStore:
    """Implements `ContentStore` in the bucket of `address`, `s3://BUCKET/PREFIX`, which must exist.

    Content is the object `PREFIX/sha256/DIGITS`. Credentials, the region and the server come from
    the environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`,
    `AWS_REGION`, `AWS_ENDPOINT_URL` (of a server that is not AWS), or the role of the machine or
    the pod. Failed requests are repeated for 20 s. Raises: `StoreError` for another address.
    """

    def __init__(self, address: str, *, max_bytes: int = MAX_CONTENT_BYTES) -> None:
        bucket, prefix = _parsed(address)
        self._max_bytes = max_bytes
        self._where = f"the content store s3://{bucket}/{prefix}"
        self._bucket = bucket
        try:
            self._objects = S3Store(
                bucket, prefix=prefix or None, client_options=_CLIENT, retry_config=_RETRY
            )
        except BaseError as error:
            failure = StoreError(f"{self._where} cannot be opened: {_named(error)}", hint=_REACH)
        else:
            return
        raise failure  # outside, see `_answer`

    async def put(self, content: bytes) -> ContentDigest:
        check_content_size(len(content), self._max_bytes, self._where)
        digest = digest_of_content(content)
        await self._answer(digest, obstore.put_async(self._objects, _key(digest), content))
        return digest

    async def get(self, digest: str) -> bytes:
        known = content_digest(digest)
        found = await self._answer(known, obstore.get_async(self._objects, _key(known)))
        check_content_size(found.meta["size"], self._max_bytes, self._where)
        body = await self._answer(known, found.bytes_async())
        return verified_content(known, bytes(body), self._where)

    async def has(self, digest: str) -> bool:
        known = content_digest(digest)
        try:
            await self._answer(known, obstore.head_async(self._objects, _key(known)))
        except ContentNotFound:
            return False
        return True

    async def aclose(self) -> None:
        """The client closes connections by itself while they are idle."""

    async def _answer(self, digest: ContentDigest, request: Awaitable[T]) -> T:
        try:
            return await request
        except (BaseError, OSError) as error:
            failure = self._failure(digest, error)
        # Raised outside, so that the client's error is no context of it: that quotes the server's
        # reply, which may quote the request with a session token.
        raise failure

    def _failure(self, digest: ContentDigest, error: BaseError | OSError) -> StoreError:
        if isinstance(error, FileNotFoundError):
            if "NoSuchBucket" in str(error):
                return StoreError(f"{self._where}: there is no such bucket", hint="create it first")
            return ContentNotFound(f"{self._where} has no content {digest}")
        if isinstance(error, (PermissionDeniedError, UnauthenticatedError)):
            return StoreError(f"{self._where} refuses these credentials", hint=_KEYS)
        status = _STATUS.search(str(error))
        if status is None:
            message = f"{self._where} cannot be reached: {_named(error)}"
            return StoreError(message, hint=f"{_REACH} {_KEYS}", retryable=True)
        retryable = status[1].startswith("5") or status[1] == "429"
        return StoreError(f"{self._where} answers with status {status[1]}", retryable=retryable)


def _parsed(address: str) -> tuple[str, str]:
    """Bucket and prefix. Raises: `StoreError`, which quotes nothing of the address."""
    form = "s3://BUCKET/PREFIX, in letters that S3 allows; credentials belong in the environment"
    parts = urlsplit(address)
    prefix = parts.path.strip("/")
    is_plain = not parts.query and not parts.fragment and "@" not in parts.netloc
    if not (is_plain and _BUCKET.fullmatch(parts.netloc) and _PREFIX.fullmatch(prefix or "_")):
        raise StoreError("this is no address of a bucket and a prefix", hint=form)
    return parts.netloc, prefix


def _key(digest: ContentDigest) -> str:
    return digest.replace(":", "/")


def _named(error: Exception) -> str:
    return type(error).__name__
