"""Which cluster, which pools: values only; nothing is opened."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from platformdirs import user_cache_path

from weft.core.errors import BuildError
from weft.core.ids import is_name
from weft.core.keywords import expect
from weft.core.suggestion import unknown
from weft.durability.content_address import content_place

DEFAULT_POOL: Final = "default"
LOCAL: Final = "local"
"""As a placement: in the process of weft."""
MAX_WORKERS: Final = 64
_KEYS: Final = ("labels", "workers")


@dataclass(frozen=True, slots=True)
class Pool:
    """Where tools run: worker processes on the nodes that have all `labels`.

    labels   custom resources of Ray that a node must have; a pool without any takes every node
             that has processors
    workers  processes on each node

    Raises: `BuildError`.
    """

    labels: tuple[str, ...] = ()
    workers: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        workers: object = self.workers
        if type(workers) is not int or not 1 <= workers <= MAX_WORKERS:
            raise BuildError(f"a pool has 1 to {MAX_WORKERS} workers on each node, not {workers!r}")
        labels: tuple[object, ...] = self.labels
        if not all(isinstance(label, str) and label for label in labels):
            raise BuildError(f"labels of a pool are names, not {self.labels!r}")


@dataclass(frozen=True, slots=True)
class Ray:
    """A Ray cluster that runs the tools of a program: `flow.run(on=weft.Ray("10.0.0.1:6379"))`.

    What it leaves open, the `run` of a workflow says.

    address     HOST:PORT of the cluster; empty: the one that `weft cluster up` started here
    pools       by name, a `Pool` or a mapping of its fields. A tool goes to the pool that its
                declaration names (`on: gpu`), else to the pool named like its resource, else to
                the pool `default`, else it stays in this process. Without pools: all go to
                `default`
    token_file  file with the token of the cluster; by default the one of `weft cluster up`, else
                what Ray's own variables say
    content     the content store for code and for values of more than 64 KiB: a folder that all
                nodes share, `s3://BUCKET/PREFIX` or `postgresql://HOST/NAME`. Its credentials are
                environment variables, which each node has under the same names
    silence_s   seconds without a sign of a worker after which its calls are lost

    Raises: `BuildError`.
    """

    address: str = ""
    pools: Mapping[str, Pool | Mapping[str, Any]] = field(default_factory=dict)
    token_file: str | Path | None = None
    content: str | Path | None = None
    silence_s: float = 6.0

    def __post_init__(self) -> None:
        expect(self.address, str, "`address` is HOST:PORT", '"10.0.0.1:6379"')
        expect(self.pools, Mapping, "`pools` maps names to pools", '{"gpu": {"labels": ["gpu"]}}')
        if self.address and not _is_address(self.address):
            hint = "HOST:PORT; ray:// is too slow for tools: run weft in the cluster's network"
            raise BuildError(f"{self.address!r} is no address of a Ray cluster", hint=hint)
        if not self.silence_s > 0:
            raise BuildError(f"`silence_s` must be positive, got {self.silence_s!r}")
        pools = {name: _pool(name, given) for name, given in self.pools.items()}
        object.__setattr__(self, "pools", pools)

    def with_pools(self, pools: Mapping[str, Pool | Mapping[str, Any]]) -> Ray:
        """The same cluster; `pools` where it has none, and one pool of all nodes without any."""
        return replace(self, pools=self.pools or pools or {DEFAULT_POOL: Pool()})

    @property
    def content_address(self) -> str:
        """The content store: the absolute path of a folder, or an address."""
        return content_place(home() / "content" if self.content is None else self.content)

    def pool(self, name: str) -> Pool:
        """The pool `name`. Raises: `BuildError`."""
        found = self.pools.get(name)
        if not isinstance(found, Pool):
            raise unknown(BuildError, "pool", name, (*self.pools, LOCAL))
        return found

    def pool_of(self, on: str | None, resource: str | None) -> str | None:
        """The pool of a tool that is declared `on`; None: it stays here. Raises: `BuildError`."""
        if on is not None:
            if on != LOCAL:
                self.pool(on)
            return None if on == LOCAL else on
        if resource is not None and resource in self.pools:
            return resource
        return DEFAULT_POOL if DEFAULT_POOL in self.pools else None


Placement: TypeAlias = Ray | Literal["local"]
"""Where the tools of a run are called: on a cluster, or in this process."""


def home() -> Path:
    """The folder of weft's own files (`WEFT_HOME`, if set)."""
    return Path(os.environ.get("WEFT_HOME") or user_cache_path("weft")).absolute()


def _is_address(text: str) -> bool:
    host, colon, port = text.rpartition(":")
    return bool(host and colon and port.isdecimal() and 0 < int(port) < 65536) and "/" not in host


def _pool(name: object, given: object) -> Pool:
    if not isinstance(name, str) or not is_name(name) or name == LOCAL:
        raise BuildError(f"{name!r} cannot name a pool", hint="use letters, digits and _")
    if isinstance(given, Pool):
        return given
    if given is None:
        return Pool()
    if not isinstance(given, Mapping):
        raise BuildError(f"the pool {name} is {given!r:.60}", hint="give {labels: [gpu]}")
    for key in given:
        if key not in _KEYS:
            raise unknown(BuildError, f"key of the pool {name}", str(key), _KEYS)
    return Pool(**given)


def no_node(labels: Sequence[str]) -> str:
    """The message that no node has all of `labels`; that none is there, without any."""
    if not labels:
        return "no node of the cluster is alive"
    return f"no node of the cluster has the label {' and '.join(labels)}"


def start_hint(labels: Sequence[str]) -> str:
    """How to start a node with `labels`."""
    if not labels:
        return "start one: `weft cluster up`"
    resources = json.dumps(dict.fromkeys(labels, 1))
    return (
        f"start one: `weft cluster down` and `weft cluster up --label 1={','.join(labels)}`, "
        f"or `ray start --address=HOST:PORT --resources='{resources}'`"
    )


def python_path() -> str:
    """`PYTHONPATH` for a process that needs this weft, wherever it is started."""
    own, given = str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")
    return f"{own}{os.pathsep}{given}" if given else own
