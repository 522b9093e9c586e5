"""Looks at the machine: Python, cores, memory, disk, folders. Knows no engine."""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import psutil

from weft.serving.doctor.check import Check
from weft.serving.vllm.machine import Machine, this_machine
from weft.serving.vllm.places import state_folder
from weft.serving.weights.shelf import models_folder

_GIB = 2**30
_LEAST_MEMORY = 2 * _GIB
_LEAST_DISK = 4 * _GIB


def check_python() -> Check:
    """The interpreter, and the weft in it."""
    return Check("python", "ok", f"{platform.python_version()}, {sys.executable}")


def check_weft() -> Check:
    """Which weft this is."""
    return Check("weft", "ok", metadata.version("weft"))


def check_cores(machine: Machine | None = None) -> Check:
    """How many cores servers may compute on."""
    machine = machine or this_machine()
    cores = len(machine.cores)
    quota = "" if machine.owns_cores else f", {machine.quota_cores} by this container's quota"
    return Check("cores", "ok", f"{cores} physical{quota}")


def check_memory(available: int | None = None) -> Check:
    """How much memory is left for servers."""
    memory = psutil.virtual_memory()
    left = memory.available if available is None else available
    found = f"{left / _GIB:.1f} GiB free of {memory.total / _GIB:.1f}"
    if left < _LEAST_MEMORY:
        advice = "stop what else uses memory: a server of a small model takes about 2 GiB"
        return Check("memory", "broken", found, advice)
    return Check("memory", "ok", found)


def check_disk(folder: Path | None = None) -> Check:
    """Whether weights fit on the disk that holds them."""
    place = folder or models_folder()
    free = shutil.disk_usage(_existing(place)).free
    found = f"{free / _GIB:.1f} GiB free for {place}"
    if free < _LEAST_DISK:
        return Check("disk", "broken", found, "free some space, or set WEFT_HOME to another disk")
    return Check("disk", "ok", found)


def check_state_folder(folder: Path | None = None) -> Check:
    """Whether servers can be registered where `weft run` looks for them."""
    place = folder or state_folder()
    try:
        with tempfile.TemporaryFile(dir=_existing(place)):
            return Check("state folder", "ok", str(place))
    except OSError as error:
        advice = "set WEFT_STATE_DIR to a folder of your own"
        return Check("state folder", "broken", f"{place}: {error.strerror}", advice)


def _existing(path: Path) -> Path:
    return next((place for place in (path, *path.parents) if place.exists()), Path("/"))
