"""What is known of one serving: the content of its file in the registry. Does no I/O."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_args

from weft.serving.vllm.form import from_form, to_form
from weft.serving.vllm.processes import Identity
from weft.serving.vllm.spec import ServeSpec

Status = Literal["starting", "ready", "degraded", "stopping"]
ReplicaStatus = Literal["starting", "ready", "restarting", "stopped", "failed"]
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ReplicaEntry:
    """One replica. `url` is what clients of the OpenAI API call the base URL; `engine` a process.

    The address stays the same when the replica is started anew. Ranks of another machine's server
    have none: "".
    """

    number: int
    url: str
    log: str
    status: ReplicaStatus = "starting"
    restarts: int = 0
    engine: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One serving. `started_at` in seconds since 1970, `stage` for people.

    `keep_alive_s`: it ends so long after the last program let go of it; None: not before it is
    told to. `drain_s`: how long requests may take to finish when it ends.
    """

    id: str
    spec: ServeSpec
    supervisor: Identity
    status: Status = "starting"
    stage: str = "starting"
    replicas: tuple[ReplicaEntry, ...] = ()
    started_at: float = field(default_factory=time.time)
    drain_s: float = 30.0
    start_timeout_s: float = 1800.0
    keep_alive_s: float | None = None

    @property
    def name(self) -> str:
        """What clients call the model."""
        return self.spec.name

    @property
    def urls(self) -> tuple[str, ...]:
        """The base URLs of all replicas that have one and have not been given up."""
        served = (r for r in self.replicas if r.status not in ("failed", "stopped"))
        return tuple(replica.url for replica in served if replica.url)

    @property
    def restarts(self) -> int:
        """Of all replicas together."""
        return sum(replica.restarts for replica in self.replicas)

    def with_replica(self, changed: ReplicaEntry) -> Entry:
        """The entry with one replica replaced or added, and the status that follows from all."""
        replicas = {r.number: r for r in self.replicas} | {changed.number: changed}
        ordered = tuple(replicas[number] for number in sorted(replicas))
        return replace(self, replicas=ordered, status=self._status(ordered))

    def _status(self, replicas: tuple[ReplicaEntry, ...]) -> Status:
        if self.status == "stopping":
            return "stopping"
        ready = sum(replica.status == "ready" for replica in replicas)
        if ready == self.spec.replicas:
            return "ready"
        return "starting" if self.status == "starting" else "degraded"

    def to_data(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        data["spec"] = to_form(self.spec)
        data["supervisor"] = asdict(self.supervisor)
        data["replicas"] = [asdict(replica) for replica in self.replicas]
        return {"format": _FORMAT, **data}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Entry:
        """The inverse of `to_data`.

        Raises: `ValueError`, `TypeError`, `KeyError`, `AttributeError` or `SpecError` for what
        is not an entry.
        """
        given = dict(data)
        if given.pop("format") != _FORMAT or given["status"] not in get_args(Status):
            raise ValueError("not an entry that this version of weft writes")
        given["started_at"] = float(data["started_at"])
        given["spec"] = from_form(data["spec"])
        given["supervisor"] = Identity(**data["supervisor"])
        given["replicas"] = tuple(ReplicaEntry(**replica) for replica in data["replicas"])
        return cls(**given)
