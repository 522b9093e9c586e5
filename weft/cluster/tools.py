"""`RayTools`: a tool runner whose tools run on a Ray cluster, as they are placed."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from weft.agents.tools import Tool, Toolbox
from weft.agents.tools.approval import ApprovalRule
from weft.agents.tools.context import current_sink
from weft.cluster.code import PackedTool, packed, packed_tool
from weft.cluster.dispatch import Dispatcher, PoolRoute
from weft.cluster.frames import read_json
from weft.cluster.host import INLINE_BYTES, error_of
from weft.cluster.link import TOOLS, BridgeLink, Connect, open_bridge
from weft.cluster.settings import Ray, no_node, start_hint
from weft.core.call_context import current_key
from weft.core.errors import ClusterError, PlacementError, WeftError, convert
from weft.core.ports import BoundTool
from weft.core.ports.content import ContentStore
from weft.core.values import ToolSpec
from weft.durability.content_address import open_content, variables_of
from weft.engine import Retry


class RayTools:
    """Implements `ToolRunner`, `ToolBinder` and `BatchRunner` over the tools of `tools`.

    `place` says where each runs; the others run in this process. Calls travel in micro-batches
    through a bridge (a child process) to workers on the nodes, code and large values by digest.

    A call whose worker is lost is repeated where its tool is pure or idempotent, with the same key.
    Others fail: with `EffectUnknown` where the effect is `once`, else with `WorkerLost`, which is
    retryable. Raises, also: `PlacementError`, `ClusterError`, `StoreError`.

    Used from one event loop at a time; `connect` opens the way to the bridge.
    """

    def __init__(self, tools: Toolbox, ray: Ray, connect: Connect | None = None) -> None:
        self._tools = tools
        self._ray = ray.with_pools({})
        self._connect = connect
        self._pools: dict[str, str] = {}
        self._packed: dict[str, PackedTool] = {}
        self._routes: dict[tuple[str, Path | None], asyncio.Future[PoolRoute]] = {}
        self._dispatcher: Dispatcher | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._content = ray.content_address
        self._store: ContentStore = open_content(self._content)

    def place(self, tool: Tool[..., Any], on: str | None = None) -> str | None:
        """Place `tool`: on the pool `on`, or as `Ray.pool_of` says; None: it stays here.

        Raises: `BuildError` for an unknown pool, `PlacementError` for what no worker can import.
        """
        name = tool.spec.name
        pool = self._ray.pool_of(on, tool.resource)
        if pool is None:
            self._pools.pop(name, None)
            return None
        self._packed[name] = packed_tool(tool)
        self._pools[name] = pool
        return pool

    async def check(self) -> None:
        """Ask the cluster for the labels of all pools that have tools; connects to it.

        A cluster that cannot be reached says nothing here: the calls tell it.

        Raises: `PlacementError` when no node has them.
        """
        tools = {pool: name for name, pool in self._pools.items()}
        for pool, name in tools.items():
            labels = self._ray.pool(pool).labels
            try:
                missing = await self._dispatch().missing(labels) if labels else []
            except ClusterError:
                return
            if missing:
                message = f"{name} is to run on the pool {pool}, and {no_node(missing)}"
                raise PlacementError(message, hint=start_hint(missing))

    def specs(self) -> tuple[ToolSpec, ...]:
        return self._tools.specs()

    def resource(self, name: str) -> str | None:
        """The resource whose slot a call of the tool takes, or None."""
        return self._tools.resource(name)

    def retry(self, name: str) -> Retry | None:
        """The retry that the tool declares, or None."""
        return self._tools.retry(name)

    def approval(self, name: str) -> ApprovalRule | None:
        """Whether calls of the tool need a person's approval; None: it does not say."""
        return self._tools.approval(name)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return await self.bound(name)(arguments)

    def bound(self, name: str) -> BoundTool:
        if name not in self._pools:
            return self._tools.bound(name)
        return partial(self._call, self._tools.get(name))

    async def call_batch(
        self, name: str, calls: Sequence[Mapping[str, Any]]
    ) -> Sequence[Any | WeftError]:
        if name not in self._pools:
            return await self._tools.call_batch(name, calls)
        tool = self._tools.get(name)
        if tool.batch is None or tool.spec.effect == "once":
            return [await self._outcome(tool, arguments) for arguments in calls]
        read = [_encoded(tool, arguments) for arguments in calls]
        sound = [text for text in read if isinstance(text, bytes)]
        results: Sequence[Any] = []
        if sound:
            body = b"".join((b"[", b",".join(sound), b"]"))
            results = await self._made(tool, "batch", body, "")
        found = iter(results)
        return [next(found) if isinstance(text, bytes) else text for text in read]

    async def aclose(self) -> None:
        """Close the way to the bridge; what runs is cancelled."""
        if self._dispatcher is not None:
            dispatcher, self._dispatcher = self._dispatcher, None
            await dispatcher.aclose()
        await self._store.aclose()

    async def _outcome(self, tool: Tool[..., Any], arguments: Mapping[str, Any]) -> Any:
        try:
            return await self._call(tool, arguments)
        except Exception as error:  # noqa: BLE001 - it is the outcome
            return convert(error)

    async def _call(self, tool: Tool[..., Any], arguments: Mapping[str, Any]) -> Any:
        text = tool.signature.parameters.encode(tool.spec.name, arguments)
        key = current_key()
        if not key and tool.spec.effect == "idempotent":
            key = uuid.uuid4().hex  # the same when it is sent again
        return await self._made(tool, "call", text, key)

    async def _made(self, tool: Tool[..., Any], kind: str, text: bytes, key: str) -> Any:
        name = tool.spec.name
        route = await self._route(name)
        if len(text) > INLINE_BYTES:
            kind, text = f"{kind}ref", to_json(await self._store.put(text))
        outcome = await self._dispatch().call(
            route, self._packed[name].ref, key, kind, text, tool.spec.effect, current_sink()
        )
        return await self._value(*outcome)

    async def _value(self, kind: str, value: Any) -> Any:
        match kind:
            case "value":
                return value
            case "ref":
                return read_json(await self._store.get(value))
            case "error":
                raise error_of(value)
            case "batch":
                return [await self._part(part) for part in value]
            case "cancelled":
                raise ClusterError("the call was cancelled on the cluster")
        raise ClusterError(f"a worker's outcome is {kind!r}")

    async def _part(self, part: Any) -> Any:
        try:
            return await self._value(*part)
        except WeftError as error:
            return error

    def _dispatch(self) -> Dispatcher:
        loop = asyncio.get_running_loop()
        if self._dispatcher is None or self._loop is not loop:
            self._loop = loop
            self._dispatcher = Dispatcher(self._connect or self._open)
        return self._dispatcher

    async def _open(self, received: Any, ended: Any) -> BridgeLink:
        return await open_bridge(self._ray, TOOLS, received, ended)

    async def _route(self, name: str) -> PoolRoute:
        """The route of a tool; its code is packed and stored once."""
        packed_one = self._packed[name]
        key = self._pools[name], packed_one.root
        made = self._routes.get(key)
        failed = made is not None and made.done() and made.exception() is not None
        if made is None or failed or made.get_loop() is not asyncio.get_running_loop():
            made = self._routes[key] = asyncio.ensure_future(self._made_route(name, packed_one))
        if made.done():
            return made.result()
        return await asyncio.shield(made)

    async def _made_route(self, name: str, tool: PackedTool) -> PoolRoute:
        digest = ""
        if tool.root is not None:
            archive = await asyncio.to_thread(packed, tool.root, tool.inside)
            digest = await self._store.put(archive)
        pool = self._ray.pool(self._pools[name])
        return PoolRoute(
            {
                "labels": pool.labels,
                "workers": pool.workers,
                "content": self._content,
                "variables": variables_of(self._content),
                "code": digest,
                "silence_s": self._ray.silence_s,
            }
        )


def _encoded(tool: Tool[..., Any], arguments: Mapping[str, Any]) -> bytes | WeftError:
    try:
        return tool.signature.parameters.encode(tool.spec.name, arguments)
    except WeftError as error:
        return error
