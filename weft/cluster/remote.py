"""A Ray cluster on given hosts, over ssh. Commands are argument lists, quoted once for the host.

The token goes to a host on standard input, never on a command line. ssh asks nothing: it uses the
keys and the known hosts of the user.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from weft.cluster.nodes import HEALTH_CHECKS, write_token
from weft.cluster.settings import home
from weft.core.errors import BuildError, ClusterError

_STATE: Final = "hosts.json"
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._-]+@)?[A-Za-z0-9][A-Za-z0-9.:-]*", re.ASCII)
_LABEL: Final = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
_START_S: Final = 180.0
_STOP_S: Final = 60.0
_SHOWN: Final = 600
_FOLDER: Final = ".weft-ray"
PORT: Final = 6379


@dataclass(frozen=True, slots=True)
class RemoteHost:
    """A host as ssh knows it, and its labels: `user@10.0.0.2=gpu,big`."""

    name: str
    labels: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """The host, without a user."""
        return self.name.rpartition("@")[2]

    @staticmethod
    def parse(text: str) -> RemoteHost:
        """Raises: `BuildError` for what is no host, such as an option of ssh."""
        name, _, labels = text.partition("=")
        listed = tuple(label for label in labels.split(",") if label)
        if not _HOST.fullmatch(name) or not all(_LABEL.fullmatch(label) for label in listed):
            raise BuildError(f"{text!r} is no host", hint="write [USER@]HOST or HOST=LABEL,LABEL")
        return RemoteHost(name, listed)


@dataclass(frozen=True, slots=True)
class RemoteCluster:
    """Hosts that run Ray, the head first, and the address of its control store."""

    address: str
    token_file: str
    hosts: tuple[RemoteHost, ...]


class RemoteStarter:
    """Starts and ends the nodes of `hosts`, whose first is the head. `python`: of the hosts."""

    def __init__(self, hosts: Sequence[RemoteHost], python: str = "python3") -> None:
        self._hosts = tuple(hosts)
        self._python = python
        self._token = home() / "hosts.token"

    def start(self) -> RemoteCluster:
        """Start all, and remember them. Raises: `ClusterError`, after those that ran have ended."""
        self._token.unlink(missing_ok=True)
        write_token(self._token)
        head = self._hosts[0]
        cluster = RemoteCluster(f"{head.address}:{PORT}", str(self._token), self._hosts)
        _save(cluster)
        try:
            for host in self._hosts:
                self._send_token(host)
                run_ssh(host, self._started(host, cluster.address), "", _START_S)
        except BaseException:
            stop_hosts(cluster)
            raise
        return cluster

    def _send_token(self, host: RemoteHost) -> None:
        script = 'umask 077 && mkdir -p -- "$1" && cat > "$1/token"'
        command = ["sh", "-c", script, "sh", _FOLDER]
        run_ssh(host, command, self._token.read_text("ascii"), _STOP_S)

    def _started(self, host: RemoteHost, address: str) -> list[str]:
        role = [f"--address={address}"]
        if host == self._hosts[0]:
            port = address.rpartition(":")[2]
            role = ["--head", f"--port={port}", "--include-dashboard=false"]
        resources = json.dumps(dict.fromkeys(host.labels, 1_000_000))
        return [
            *("sh", "-c", _START, "sh", _FOLDER),
            *("env", *(f"{name}={value}" for name, value in _variables().items())),
            *(self._python, "-m", "ray.scripts.scripts", "start", "--block"),
            *("--disable-usage-stats", f"--node-ip-address={host.address}", *role),
            f"--resources={resources}",
        ]


_START: Final = """
cd -- "$1" && shift
export RAY_AUTH_TOKEN_PATH="$PWD/token"
nohup setsid "$@" > log 2>&1 < /dev/null &
echo $! > pid
for _ in $(seq 90); do
  if grep -q "Ray runtime started" log; then exit 0; fi
  if ! kill -0 "$(cat pid)" 2> /dev/null; then break; fi
  sleep 1
done
tail -c 600 log >&2
exit 1
"""
_STOP: Final = """
cd -- "$1" 2> /dev/null || exit 0
if [ -f pid ]; then
  pid=$(cat pid)
  kill -TERM -- "-$pid" 2> /dev/null
  for _ in $(seq 10); do kill -0 -- "-$pid" 2> /dev/null || break; sleep 1; done
  kill -KILL -- "-$pid" 2> /dev/null
fi
rm -f pid token log
exit 0
"""


def _variables() -> Mapping[str, str]:
    return {**HEALTH_CHECKS, "RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}


def run_ssh(host: RemoteHost, command: Sequence[str], given: str, limit_s: float) -> str:
    """What `command` prints on `host`; `given` is its standard input.

    Raises: `ClusterError` with its last lines when it fails.
    """
    arguments = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "--", host.name]
    try:
        done = subprocess.run(  # noqa: S603 - an argument list; ssh joins it, so it is quoted
            [*arguments, shlex.join(command)],
            input=given,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise ClusterError("there is no ssh here", retryable=False) from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{host.name} took longer than {limit_s:g} s") from error
    if done.returncode:
        raise ClusterError(f"{host.name}: {done.stderr.strip()[-_SHOWN:]}")
    return done.stdout


def stop_hosts(cluster: RemoteCluster) -> list[str]:
    """End the nodes on all hosts, the head last; returns what went wrong, by host."""
    problems = []
    for host in reversed(cluster.hosts):
        try:
            run_ssh(host, ["sh", "-c", _STOP, "sh", _FOLDER], "", _STOP_S)
        except ClusterError as error:
            problems.append(error.message)
    if not problems:
        (home() / _STATE).unlink(missing_ok=True)
        Path(cluster.token_file).unlink(missing_ok=True)
    return problems


def hosts_alive(cluster: RemoteCluster) -> Mapping[str, bool]:
    """Whether the node of each host runs."""
    script = 'kill -0 "$(cat "$1/pid")"'
    alive = {}
    for host in cluster.hosts:
        try:
            run_ssh(host, ["sh", "-c", script, "sh", _FOLDER], "", _STOP_S)
        except ClusterError:
            alive[host.name] = False
        else:
            alive[host.name] = True
    return alive


def _save(cluster: RemoteCluster) -> None:
    file = home() / _STATE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(cluster)), "utf-8")


def saved_hosts() -> RemoteCluster | None:
    """The hosts that were started over ssh. Raises: `ClusterError`."""
    file = home() / _STATE
    try:
        given: dict[str, Any] = json.loads(file.read_text("utf-8"))
        hosts = tuple(RemoteHost(each["name"], tuple(each["labels"])) for each in given["hosts"])
        return RemoteCluster(str(given["address"]), str(given["token_file"]), hosts)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClusterError(f"{file} cannot be read: {error}", hint="remove it") from error
