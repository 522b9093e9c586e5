"""A tool runner over the operations of an OpenAPI document. Connects on the first call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.agents.openapi.address import AddressPolicy, ServerOrigin, origin_of
from weft.agents.openapi.answer import failure_of, value_of
from weft.agents.openapi.client import HttpPool, RequestSender, Resolver
from weft.agents.openapi.credentials import SecurityBinding, bind_security, read_credentials
from weft.agents.openapi.document import ApiDocument, read_document
from weft.agents.openapi.operation import Operation, find, read
from weft.agents.openapi.options import OpenApiOptions
from weft.agents.openapi.request import build_request, validate_arguments
from weft.agents.tools.problem import time_limit
from weft.agents.tools.threads import in_thread
from weft.agents.untrusted import check_effects, identifiers, printable
from weft.core.errors import BuildError, ToolNotFound, ToolRaised
from weft.core.foreign import TRANSIENT_STATUSES
from weft.core.ports import Clock
from weft.core.ports.clock import SystemClock
from weft.core.suggestion import suggestion
from weft.core.values import ToolSpec


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """An operation with its server and keys. `base` is a path without a trailing slash."""

    operation: Operation
    origin: ServerOrigin
    base: str
    bindings: tuple[SecurityBinding, ...]


class OpenApiTools:
    """Implements `ToolRunner`: the listed operations of `document`, and no others.

    document     a file, its bytes, or plain data; OpenAPI 3.0 or 3.1, JSON or YAML
    operations   the operations: by `operationId`, or as `GET /pets/{id}`. With names of your own:
                 {"find_pet": "GET /pets/{id}"}
    prefix       added before every name

    A tool takes the operation's parameters, and its JSON body as `body`; it returns the JSON or the
    text of the answer, checked against the document. Parameters that share a name get their place
    as a suffix: `id_path`, `id_query`. `unchecked` lists the tools whose answer schema is too large
    to check.

    Addresses that are not public are refused, also behind a name or a redirect, unless `private`
    allows them. Keys are sent only to `base_url`.

    Raises: `BuildError` when the document, an operation or an option cannot be used.
    """

    def __init__(
        self,
        document: Mapping[str, Any] | bytes | Path,
        operations: Sequence[str] | Mapping[str, str],
        options: OpenApiOptions | None = None,
        *,
        prefix: str = "",
        clock: Clock | None = None,
        resolver: Resolver | None = None,
    ) -> None:
        self._options = options or OpenApiOptions()
        read_ = read_document(document)
        self._endpoints = {
            endpoint.operation.spec.name: endpoint
            for endpoint in _endpoints(read_, operations, self._options, prefix)
        }
        self.unchecked = {
            name: response.unchecked
            for name, endpoint in self._endpoints.items()
            for response in endpoint.operation.responses.declared.values()
            if response.unchecked
        }
        self._resolver = resolver
        self._clock = clock or SystemClock()
        self._exchanges: dict[ServerOrigin, tuple[HttpPool, RequestSender]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def __aenter__(self) -> OpenApiTools:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def start(self) -> None:
        """Does nothing; part of the common interface of tool sources."""

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(endpoint.operation.spec for endpoint in self._endpoints.values())

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            raise ToolNotFound(f"no tool {name!r}", hint=suggestion(name, self._endpoints))
        limit_s, repeatable = self._options.timeout_s, endpoint.operation.spec.repeatable
        async with time_limit(name, limit_s, retryable=repeatable):
            return await self._call(endpoint, arguments, repeatable)

    async def aclose(self) -> None:
        """Close all connections. Idempotent."""
        self._closed = True
        while self._exchanges:
            _, (connections, _) = self._exchanges.popitem()
            await connections.aclose()

    async def _call(
        self, endpoint: _Endpoint, arguments: Mapping[str, Any], repeatable: bool
    ) -> Any:
        operation = endpoint.operation
        # In threads, both checks: they may take long.
        validated = await asyncio.to_thread(validate_arguments, operation, arguments)
        keys = read_credentials(endpoint.bindings)
        request = build_request(operation, endpoint.origin, endpoint.base, validated, keys)
        exchange = self._exchange(endpoint.origin)
        answer = await exchange.answer(request, repeatable=repeatable)
        if not 200 <= answer.status < 300:
            again = repeatable and answer.status in TRANSIENT_STATUSES
            raise failure_of(operation, answer, keys.secrets, retryable=again)
        return await in_thread(
            lambda: value_of(operation, answer, keys.secrets), operation.spec.name
        )

    def _exchange(self, origin: ServerOrigin) -> RequestSender:
        if self._closed:
            raise ToolRaised("the tools of this document are closed")
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # connections belong to their event loop
            self._loop = loop
            self._exchanges.clear()
        if origin not in self._exchanges:
            reach = AddressPolicy(origin, self._options.networks())
            connections = HttpPool(reach, self._options.connections, self._resolver)
            exchange = RequestSender(connections, self._options, self._clock)
            self._exchanges[origin] = connections, exchange
        return self._exchanges[origin][1]


def _endpoints(
    document: ApiDocument,
    wanted: Sequence[str] | Mapping[str, str],
    options: OpenApiOptions,
    prefix: str,
) -> list[_Endpoint]:
    if not wanted:
        raise BuildError("no operation is listed", hint="operations: [list_pets]")
    if isinstance(wanted, str):
        raise BuildError("`operations` must be a list", hint=f"operations: [{wanted}]")
    chosen = [find(document, text) for text in _listed(wanted)]
    labels = list(wanted) if isinstance(wanted, Mapping) else [each.id for each in chosen]
    names = identifiers(labels, prefix)
    check_effects(options.effects, labels)
    if len(set(labels)) < len(labels):
        raise BuildError("an operation is listed twice")
    made = []
    for found, label in zip(chosen, labels, strict=True):
        url = options.base_url or _server(document, found.declared, found.item)
        origin, parts = origin_of(url)
        if parts.query or parts.fragment:
            raise BuildError(f"{printable(url, 100)!r} has more than a path behind the server")
        if options.auth_env is not None and origin.scheme != "https" and not origin.is_local:
            raise BuildError("a key would go over the network in clear", hint="use https://")
        version = f"{document.digest}:{origin.scheme}://{origin.authority}{parts.path}"
        operation = read(document, found, names[label], version, options, label)
        bindings = bind_security(document, operation.security, options.auth_env)
        made.append(_Endpoint(operation, origin, parts.path.rstrip("/"), bindings))
    return made


def _listed(wanted: Sequence[object] | Mapping[str, object]) -> list[str]:
    texts: list[str] = []
    for text in wanted.values() if isinstance(wanted, Mapping) else wanted:
        if not isinstance(text, str):
            hint = "an operationId, or GET /pets/{id}"
            raise BuildError(f"{text!r} names no operation", hint=hint)
        texts.append(text)
    return texts


def _server(document: ApiDocument, *parts: Mapping[str, Any]) -> str:
    """The first address that the document gives, the most particular one. Raises: `BuildError`."""
    for part in (*parts, document.root):
        servers = part.get("servers")
        if isinstance(servers, list) and servers:
            server = document.resolved(servers[0], "a server")
            url = str(server.get("url", ""))
            variables = server.get("variables", {})
            for name, about in variables.items() if isinstance(variables, Mapping) else ():
                url = url.replace(f"{{{name}}}", str(document.resolved(about, name).get("default")))
            if url.startswith(("http://", "https://")):
                return url
    raise BuildError("the document does not say where its server is", hint="give `base_url`")
