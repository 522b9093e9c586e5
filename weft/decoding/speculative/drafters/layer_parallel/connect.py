"""How ranks find each other: a store on loopback, then a process group over it.

Gloo between processes without accelerators, NCCL else. Neither is made the default group of the
process, which may have one of its own. A store has no password: whoever can open connections on
this machine's loopback while a group is made can disturb it.
"""

from __future__ import annotations

import os
import socket
from datetime import timedelta

import torch
from torch import distributed

HOST = "127.0.0.1"


def open_store(ranks: int, timeout_s: float) -> distributed.TCPStore:
    """A store on a free port, which others on this machine can join."""
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        # handed over as an open socket: on its own the store would listen on every interface
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
    """The group of all ranks; waits for them. `timeout_s` holds for this and every later exchange.

    Raises: `RuntimeError` when the others do not come.
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
