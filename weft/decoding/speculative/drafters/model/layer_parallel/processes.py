"""A draft model over processes: this one is the first rank, and starts and ends the others.

Ranks meet through a store on loopback, then in a process group over it: gloo for CPUs, else NCCL.
Neither becomes the default group of the process, which may have its own. A store has no password:
any process that can connect to this machine's loopback while a group is made can disturb it. A
rank ends with its parent, which closes its input.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from subprocess import PIPE, Popen, TimeoutExpired
from tempfile import TemporaryFile
from typing import Any

import torch
from torch import distributed

from weft.core.errors import ModelUnavailable, StartError
from weft.decoding.speculative.drafters.model.layer_parallel.layered import (
    DraftJob,
    LayerParallelModel,
    LoadedShards,
    RankChannel,
    load_shards,
)
from weft.decoding.speculative.drafters.model.layer_parallel.shard import ShardLayout

HOST = "127.0.0.1"


def open_store(ranks: int, timeout_s: float) -> distributed.TCPStore:
    """A store on a free port, which other processes of this machine can join."""
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        # as an open socket: by itself the store would listen on all interfaces
        return distributed.TCPStore(
            HOST,
            port,
            ranks,
            is_master=True,
            timeout=timedelta(seconds=timeout_s),
            wait_for_workers=False,
            master_listen_fd=os.dup(listener.fileno()),
        )


def join_store(port: int, ranks: int, timeout_s: float) -> distributed.TCPStore:
    """The store that another process opened."""
    timeout = timedelta(seconds=timeout_s)
    return distributed.TCPStore(HOST, port, ranks, is_master=False, timeout=timeout)


def join_group(
    store: distributed.TCPStore, rank: int, ranks: int, device: torch.device, timeout_s: float
) -> distributed.ProcessGroup:
    """The group of all ranks; waits for them. `timeout_s` limits this and every later exchange.

    Raises: `RuntimeError` when ranks are missing.
    """
    timeout = timedelta(seconds=timeout_s)
    group = distributed.ProcessGroup(store, rank, ranks)
    if device.type == "cpu":
        options = distributed.ProcessGroupGloo._Options()  # noqa: SLF001
        options._devices = [distributed.ProcessGroupGloo.create_device(hostname=HOST)]  # noqa: SLF001
        options._timeout = timeout  # noqa: SLF001
        backend = distributed.ProcessGroupGloo(store, rank, ranks, options)
        kind = distributed.ProcessGroup.BackendType.GLOO
    else:
        os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
        options = distributed.ProcessGroupNCCL.Options()
        options._timeout = timeout  # noqa: SLF001
        backend = distributed.ProcessGroupNCCL(store, rank, ranks, options)
        kind = distributed.ProcessGroup.BackendType.NCCL
    group._set_default_backend(kind)  # noqa: SLF001
    group._register_backend(device, kind, backend)  # noqa: SLF001
    return group


PROGRAM = "weft.decoding.speculative.drafters.model.layer_parallel.rank"
READY = b"ready\n"
_GRACE_S = 5.0
_TAIL_BYTES = 2000


class RankProcess:
    """A rank in a new process of weft's own program."""

    def __init__(self, rank: int, first: dict[str, Any]) -> None:
        self._rank = rank
        self._stderr = TemporaryFile()  # noqa: SIM115 - open as long as the process
        try:
            self._process = Popen(  # noqa: S603 - our own interpreter and program
                [sys.executable, "-P", "-m", PROGRAM],
                stdin=PIPE,
                stdout=PIPE,
                stderr=self._stderr,
                start_new_session=True,
            )
        except OSError as error:
            self._stderr.close()
            raise StartError(f"rank {rank} cannot be started: {error}") from error
        with suppress(OSError):  # it ended at once: `wait_until_ready` reports the reason
            self.send(first)

    def send(self, message: object) -> None:
        """Send one line. Raises: `OSError` when the process is gone."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def wait_until_ready(self, timeout_s: float) -> None:
        """Wait for the rank. Raises: `StartError` when it ends, or takes longer."""
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        deadline = time.monotonic() + timeout_s
        received = b""
        while READY not in received:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise StartError(
                    f"rank {self._rank} was not ready after {timeout_s:g} s{self._tail()}"
                )
            piece = os.read(pipe, 4096)
            if not piece:
                raise StartError(f"rank {self._rank} ended before it was ready{self._tail()}")
            received = received[-len(READY) :] + piece

    def close(self) -> None:
        """End the process: by closing its input, after a grace period by force."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):  # it ended before it had read the last line
                pipe.close()
        try:
            self._process.wait(_GRACE_S)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()

    def _tail(self) -> str:
        end = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(end - _TAIL_BYTES, 0))
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""


START_S = 120.0
EXCHANGE_S = 60.0


class ProcessTeam:
    """Implements `DraftTeam` over `layout.ranks` processes on this machine.

    start_s     timeout for the other processes to start
    exchange_s  timeout for ranks that wait for one another in a draft

    Raises: `StartError` when they do not start; what `load_shards` raises.
    """

    def __init__(
        self, layout: ShardLayout, start_s: float = START_S, exchange_s: float = EXCHANGE_S
    ) -> None:
        loaded = load_shards(layout, (0,))  # first: reports problems of the model
        self.context_tokens = loaded.context_tokens
        self.forwards = 0
        self._children: list[RankProcess] = []
        self._layered: LayerParallelModel | None = None
        self._ending = threading.Lock()
        try:
            self._layered = self._started(layout, loaded, start_s, exchange_s)
        except RuntimeError as error:
            self.close()
            raise StartError(f"the ranks of the draft model did not meet: {error}") from error
        except BaseException:
            self.close()
            raise

    def draft(self, jobs: Sequence[DraftJob]) -> list[list[int]]:
        layered = self._layered
        if layered is None:
            raise ModelUnavailable("the ranks of the draft model are gone", retryable=False)
        try:
            for child in self._children:
                child.send([asdict(job) for job in jobs])
            drafts = layered.draft(jobs)
        except (RuntimeError, OSError) as error:
            self.close()
            raise ModelUnavailable(f"a rank of the draft model was lost: {error}") from error
        except BaseException:
            self.close()  # the other ranks would wait for ever
            raise
        self.forwards = layered.forwards
        return drafts

    def close(self) -> None:
        with self._ending:
            layered, self._layered = self._layered, None
            if layered is not None:
                layered.close()
            while self._children:
                self._children.pop().close()

    def _started(
        self, layout: ShardLayout, loaded: LoadedShards, start_s: float, exchange_s: float
    ) -> LayerParallelModel:
        store = open_store(layout.ranks, start_s)
        for rank in range(1, layout.ranks):
            config = {
                "layout": layout.to_json(),
                "rank": rank,
                "port": store.port,
                "start_s": start_s,
                "exchange_s": exchange_s,
            }
            self._children.append(RankProcess(rank, config))
        for child in self._children:
            child.wait_until_ready(start_s)
        device = loaded.shards[0].device
        group = join_group(store, 0, layout.ranks, device, exchange_s)
        return LayerParallelModel(loaded.shards, RankChannel(group), loaded.groups, layout.threads)
