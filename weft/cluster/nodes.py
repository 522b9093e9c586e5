"""A Ray cluster on this machine: a head and nodes on loopback addresses of their own.

Processes are ended by their ids and by a mark in their environment, never by name. Everything is in
one folder, which `down` removes.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from weft.agents.process_tree import environment, kill_group, new_mark
from weft.cluster.settings import home, python_path
from weft.core.errors import BuildError, ClusterError
from weft.core.extras import advice

START_S: Final = 90.0
_STATE: Final = "cluster.json"
_STARTED: Final = "Ray runtime started"
_SHOWN: Final = 600
_MOST_NODES: Final = 64
_OBJECT_STORE_BYTES: Final = 80 * 1024 * 1024
"""About the least that Ray takes: values of weft do not pass through it."""
_MIB: Final = 1024 * 1024
_PAUSE_S: Final = 0.1
_GRACE_S: Final = 5.0
HEALTH_CHECKS: Final[Mapping[str, str]] = {
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}
"""So that Ray sees a frozen node in about 5 s; by default it takes a minute."""


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node: its loopback address, its labels, and its first process, which leads a group."""

    name: str
    address: str
    pid: int
    mark: str
    labels: tuple[str, ...] = ()

    @property
    def is_alive(self) -> bool:
        """Whether its first process is there, and is ours."""
        with suppress(OSError):
            environ = Path("/proc", str(self.pid), "environ").read_bytes()
            return f"WEFT_PROCESS={self.mark}".encode() in environ.split(b"\0")
        return False


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """A cluster that `start_cluster` started. `address`: HOST:PORT of its control store."""

    address: str
    token_file: str
    folder: str
    nodes: tuple[ClusterNode, ...]

    @property
    def is_alive(self) -> bool:
        """Whether its head is there."""
        return self.nodes[0].is_alive

    def stop(self) -> None:
        """End every process of it, and remove its folder."""
        for node in self.nodes:
            with suppress(ProcessLookupError, PermissionError):
                if node.is_alive:
                    os.killpg(node.pid, signal.SIGCONT)
                    os.kill(node.pid, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE_S
        while any(node.is_alive for node in self.nodes) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
        for node in self.nodes:
            if node.is_alive:
                kill_group(node.pid, node.mark)
            else:
                kill_marked(node.mark)
        own = {node.pid for node in self.nodes}
        for process in [each for each in _CHILDREN if each.pid in own]:
            process.wait()
            _CHILDREN.remove(process)
        shutil.rmtree(self.folder, ignore_errors=True)


def kill_marked(mark: str) -> None:
    """Kill the processes with `mark`; the group of their first one may have another owner now."""
    kill_group(_NO_GROUP, mark)


_NO_GROUP: Final = 2**22 + 1
"""No process id of Linux is that large."""


class ClusterStarter:
    """Starts nodes one after another, and ends them all when one does not start."""

    def __init__(self, token_file: str | None = None, passed: Sequence[str] = ()) -> None:
        self.folder = tempfile.mkdtemp(prefix="weft-ray-")  # mode 0700; short, for its sockets
        self.token_file = token_file or str(Path(self.folder, "token"))
        if token_file is None:
            write_token(Path(self.token_file))
        self.nodes: list[ClusterNode] = []
        self.address = ""
        self._passed = tuple(passed)

    def head(self) -> None:
        """Start the head, without processors; another one at the same address.

        Raises: `ClusterError`.
        """
        host = "127.0.0.2"
        self.address = self.address or f"{host}:{free_port(host)}"
        port = self.address.rpartition(":")[2]
        ray = Path(self.folder, "ray")
        options = ["--head", f"--port={port}", "--num-cpus=0", f"--temp-dir={ray}"]
        options += ["--include-dashboard=false"]
        if find_spec("grpc") is not None:  # then Ray serves its own client, by default at one port
            options += [f"--ray-client-server-port={free_port(host)}"]
        self._start("head", host, options)

    def node(self, labels: Sequence[str] = ()) -> ClusterNode:
        """Start a node with one processor and these labels. Raises: `ClusterError`."""
        at = len(self.nodes)
        resources = json.dumps(dict.fromkeys(labels, 1_000_000))
        options = [f"--address={self.address}", "--num-cpus=1", f"--resources={resources}"]
        return self._start(f"node{at}", f"127.0.0.{at + 2}", options, labels)

    def cluster(self) -> LocalCluster:
        """All that was started."""
        return LocalCluster(self.address, self.token_file, self.folder, tuple(self.nodes))

    def _start(
        self, name: str, host: str, options: list[str], labels: Sequence[str] = ()
    ) -> ClusterNode:
        mark = new_mark()
        log = Path(self.folder, f"{name}.log")
        command = [*ray_start(), "--block", f"--node-ip-address={host}", *options]
        command += [f"--object-store-memory={_OBJECT_STORE_BYTES}"]
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - an argument list of our own
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=node_environment(mark, self.token_file, self._passed) | {"TMPDIR": self.folder},
                start_new_session=True,
                cwd=self.folder,
            )
        _CHILDREN.append(process)
        node = ClusterNode(name, host, process.pid, mark, tuple(labels))
        self.nodes.append(node)
        deadline = time.monotonic() + START_S
        while _STARTED not in log.read_text("utf-8", "replace"):
            if process.poll() is not None or time.monotonic() > deadline:
                said = log.read_text("utf-8", "replace").strip()[-_SHOWN:]
                raise ClusterError(f"{name} of the cluster did not start: {said}")
            time.sleep(_PAUSE_S)
        return node


_CHILDREN: Final[list[subprocess.Popen[bytes]]] = []
"""Nodes that this process started: they outlive it, unless somebody stops them."""


def check_ray() -> None:
    """Raises: `ClusterError` where Ray is not installed."""
    if find_spec("ray") is None:
        message = "the package ray is missing for clusters"
        raise ClusterError(message, hint=advice("ray"), retryable=False)


def ray_start() -> list[str]:
    """The command that starts a node, of this interpreter's Ray. Raises: `ClusterError`."""
    check_ray()
    run = "import sys; from ray.scripts.scripts import main; sys.exit(main())"
    return [sys.executable, "-P", "-c", run, "start", "--disable-usage-stats"]


def node_environment(mark: str, token_file: str, passed: Sequence[str] = ()) -> dict[str, str]:
    """The variables of a node: the necessary ones, its token, and those named by the user."""
    return {
        **environment(mark, *passed),
        **HEALTH_CHECKS,
        "PYTHONPATH": python_path(),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": token_file,
    }


def write_token(file: Path) -> None:
    """A new token in `file`, readable by its owner alone."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(secrets.token_hex(32))


def free_port(host: str) -> int:
    """A port of `host` that nothing listens at."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def start_cluster(
    nodes: Sequence[Sequence[str]], passed: Sequence[str] = (), token_file: str | None = None
) -> LocalCluster:
    """A head, and a node for each of `nodes`, which are the labels of each.

    `passed`: names of environment variables that the nodes get, with their values here.

    Raises: `ClusterError`, after what had started has been ended; `BuildError`.
    """
    if not 1 <= len(nodes) <= _MOST_NODES:
        raise BuildError(f"a cluster here has 1 to {_MOST_NODES} nodes, not {len(nodes)}")
    starter = ClusterStarter(token_file, passed)
    try:
        starter.head()
        for labels in nodes:
            starter.node(labels)
    except BaseException:
        starter.cluster().stop()
        raise
    return starter.cluster()


def save_cluster(cluster: LocalCluster) -> None:
    """Remember `cluster` as the one of this user."""
    file = home() / _STATE
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(cluster)), "utf-8")
    partial.chmod(0o600)
    partial.replace(file)


def saved_cluster() -> LocalCluster | None:
    """The cluster that `weft cluster up` started, dead or alive. Raises: `ClusterError`."""
    file = home() / _STATE
    try:
        given: dict[str, Any] = json.loads(file.read_text("utf-8"))
        nodes = tuple(ClusterNode(**{**n, "labels": tuple(n["labels"])}) for n in given["nodes"])
        return LocalCluster(**{**given, "nodes": nodes})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClusterError(f"{file} cannot be read: {error}", hint="remove it") from error


def node_name(cluster: str, address: str) -> str:
    """A node of the cluster at `cluster` as `weft cluster status` names it; else its address."""
    try:
        saved = saved_cluster()
    except ClusterError:
        return address
    nodes = saved.nodes if saved is not None and saved.address == cluster else ()
    return next((node.name for node in nodes if node.address == address), address)


def forget_cluster() -> None:
    """Forget the saved cluster."""
    (home() / _STATE).unlink(missing_ok=True)


def running_cluster() -> LocalCluster:
    """The saved cluster, which runs. Raises: `ClusterError`."""
    found = saved_cluster()
    if found is None or not found.is_alive:
        hint = "start one with `weft cluster up`, or give an address"
        raise ClusterError("no cluster runs on this machine", hint=hint, retryable=False)
    return found
