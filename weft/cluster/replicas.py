"""`RayReplicas`: servers of a model on the nodes of a Ray cluster, as a source of endpoints.

Ray places them and keeps their processes. Requests go straight from the client to a server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Collection
from functools import partial
from typing import Any, Final

from weft.cluster.cluster_replica import ClusterReplica, ReplicaChannel
from weft.cluster.frames import Header
from weft.cluster.link import REPLICAS, Connect, open_bridge
from weft.cluster.settings import Ray
from weft.core.errors import SpecError, WeftError
from weft.core.loggers import logger
from weft.core.ports.clock import Clock, SystemClock
from weft.serving.openai import OpenAIModel
from weft.serving.vllm.launch.spec import ServeSpec, to_form
from weft.serving.vllm.supervise import registry
from weft.serving.vllm.supervise.detached import SupervisionTerms, entry_for
from weft.serving.vllm.supervise.processes import Identity
from weft.serving.vllm.supervise.registry import ReplicaEntry, ServingEntry
from weft.serving.vllm.supervise.replica_process import RestartPolicy
from weft.serving.vllm.supervise.supervisor import ServerSupervisor

_logger = logger("cluster")
_CLOCK: Final = SystemClock()
_TERMS: Final = SupervisionTerms()
_HERE: Final = Ray()
_LATE_S: Final = 30.0


class RayReplicas:
    """Implements `ReplicaPool` and `EndpointSource` with vLLM servers on the nodes of `ray`.

    `scale` says how many there are; a `FollowingFleet` uses those that are ready. One replica is
    one actor in a placement group, whose bundle has `tp * pp * dp` GPUs (processors, where `device`
    is cpu) and a little of all `labels`. It listens at its node's address, and `weft serve`'s
    supervisor restarts it there. A replica whose node is lost goes to another one, by the same
    policy of restarts; without room it waits.

        replicas = RayReplicas(ServeSpec("qwen3", tp=2), weft.Ray("10.0.0.1:6379"))
        fleet = FollowingFleet("qwen3", replicas, replicas.client)
        await replicas.scale(2)

    `ray`: by default the cluster that `weft cluster up` started. Weights, weft and vLLM must be on
    every node, and the variable `api_key_env`, if nodes are not on loopback addresses.
    `drain_s`: what requests in flight get when a replica leaves; `start_timeout_s`: what a start
    gets. Used in one event loop. All replicas end with `aclose`, or with this process.

    Raises: `SpecError` for a spec of several machines, or with an address.
    """

    def __init__(
        self,
        spec: ServeSpec,
        ray: Ray = _HERE,
        *,
        labels: Collection[str] = (),
        drain_s: float = _TERMS.drain_s,
        start_timeout_s: float = _TERMS.start_timeout_s,
        restarts: Callable[[], RestartPolicy] = RestartPolicy,
        clock: Clock = _CLOCK,
        connect: Connect | None = None,
    ) -> None:
        check_placeable(spec)
        self._spec = spec
        self._drain_s = drain_s
        self.start_timeout_s = start_timeout_s
        self._restarts = restarts
        self._clock = clock
        self._request = _request(spec, labels, drain_s, start_timeout_s)
        self._channel = ReplicaChannel(connect or partial(open_bridge, ray, REPLICAS))
        self._replicas: dict[int, ClusterReplica] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._leaving: set[int] = set()
        self._watchers: set[asyncio.Event] = set()
        self._failure: WeftError | None = None

    @property
    def model(self) -> str:
        """The model's name for clients."""
        return self._spec.name

    @property
    def states(self) -> tuple[ReplicaEntry, ...]:
        """What is known of each replica, in the order of their numbers."""
        return tuple(self._replicas[number].state for number in sorted(self._replicas))

    def client(self, url: str) -> OpenAIModel:
        """The client of one replica; its key comes from the variable that the spec names."""
        key = self._spec.api_key_env
        decoder = self._spec.decode.method
        return OpenAIModel(url, self._spec.name, api_key_env=key, priority=True, decoder=decoder)

    async def scale(self, replicas: int) -> None:
        """Have so many replicas some time from now. One that was given up is tried again.

        Those that go, the youngest first, get no more calls and have `drain_s` for the others.
        Raises: `ValueError` for less than none.
        """
        if replicas < 0:
            raise ValueError(f"there are no {replicas} replicas")
        self._failure = None
        staying = sorted(self._tasks.keys() - self._leaving)
        for number in staying[replicas:]:
            self._leaving.add(number)
            self._replicas[number].stop(self._drain_s)
        for _ in range(replicas - len(staying)):
            self._start(min(set(range(len(self._tasks) + 1)) - self._tasks.keys()))
        self._tell()

    async def watch(self) -> AsyncGenerator[Collection[str], None]:
        """See `EndpointSource`. Raises: the error of a replica that was given up as the last."""
        news = asyncio.Event()
        self._watchers.add(news)
        last: list[str] | None = None
        try:
            while True:
                news.clear()
                if self._failure is not None and not self._tasks:
                    raise self._failure
                urls = self._urls()
                if urls != last:
                    last = urls
                    yield urls
                await news.wait()
        finally:
            self._watchers.discard(news)

    def new_replica(
        self, number: int, changed: Callable[[ReplicaEntry], None], show: Callable[[str], None]
    ) -> ClusterReplica:
        """A further replica, which the caller runs, and `scale` does not count."""
        return ClusterReplica(
            number,
            self._channel,
            self._request,
            changed,
            show,
            clock=self._clock,
            restarts=self._restarts(),
        )

    async def aclose(self) -> None:
        """End all replicas, now."""
        for replica in self._replicas.values():
            replica.kill()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks.values(), timeout=_LATE_S)
            for task in late:
                task.cancel()
        await self._channel.aclose()

    def _start(self, number: int) -> None:
        name = f"replica {number} of {self._spec.name}"
        replica = self.new_replica(
            number, lambda _: self._tell(), lambda text: _logger.info("%s %s", name, text)
        )
        self._replicas[number] = replica
        self._tasks[number] = asyncio.create_task(self._keep(number, replica))

    async def _keep(self, number: int, replica: ClusterReplica) -> None:
        try:
            await replica.run()
        except WeftError as error:
            _logger.warning("replica %d of %s: %s", number, self._spec.name, error)
            self._failure = error
        finally:
            del self._tasks[number]
            self._leaving.discard(number)
            self._tell()

    def _urls(self) -> list[str]:
        """Where replicas serve that stay; also those that are restarted at their address."""
        staying = self._tasks.keys() - self._leaving
        states = [self._replicas[number].state for number in staying]
        return sorted(one.url for one in states if one.url and one.status in _SERVING)

    def _tell(self) -> None:
        for news in self._watchers:
            news.set()


_SERVING: Final = ("ready", "restarting")


def serve_on(
    ray: Ray,
    spec: ServeSpec,
    terms: SupervisionTerms,
    show: Callable[[str], None],
    ready: Callable[[ServingEntry], None],
) -> bool:
    """Serve `spec.replicas` replicas on `ray`, as `weft serve` does on this machine.

    They are one serving in the registry: `weft ps`, `weft stop` and clients find them. Main thread
    only. Raises: as `serve`, and `ClusterError`.
    """
    replicas = RayReplicas(spec, ray, drain_s=terms.drain_s, start_timeout_s=terms.start_timeout_s)
    entry = entry_for(registry.new_id(spec.name), spec, terms, Identity.own())

    async def run() -> bool:
        make = replicas.new_replica
        try:
            return await ServerSupervisor(entry, elsewhere=make, show=show, ready=ready).run()
        finally:
            await replicas.aclose()

    return asyncio.run(run())


def check_placeable(spec: ServeSpec) -> None:
    """Raises: `SpecError` for servers of several machines, or with an address of their own."""
    if spec.nodes > 1 or spec.engine_nodes > 1 or spec.headless:
        raise SpecError(
            "a replica on a cluster is a server on one node",
            hint="docs/serving/multi-node.md says how one server spans several machines",
        )
    if spec.host != ServeSpec.__dataclass_fields__["host"].default:
        raise SpecError("a replica listens at its node's address", hint="leave `host` out")


def _request(
    spec: ServeSpec, labels: Collection[str], drain_s: float, start_timeout_s: float
) -> Header:
    """What the bridge needs to place a replica of `spec`."""
    settings: dict[str, Any] = {
        "spec": to_form(spec),
        "drain_s": drain_s,
        "start_timeout_s": start_timeout_s,
    }
    return {
        "ranks": spec.ranks,
        "device": spec.device,
        "labels": tuple(labels),
        "settings": json.dumps(settings),
    }
