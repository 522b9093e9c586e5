"""Checks of the machine: Python, cores, memory, disk, folders, torch and the GPUs that it sees."""

from __future__ import annotations

import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import psutil

from weft.serving.doctor.check import Check, ProbeResult, probe
from weft.serving.vllm.launch.engine import has_nvidia
from weft.serving.vllm.launch.machine import HostResources, this_machine
from weft.serving.vllm.supervise.state_folders import state_folder
from weft.serving.weights.model_folder import models_folder

_GIB = 2**30
_MIN_MEMORY = 2 * _GIB
_MIN_DISK = 4 * _GIB


def check_python() -> Check:
    """The Python interpreter."""
    return Check("python", "ok", f"{platform.python_version()}, {sys.executable}")


def check_weft() -> Check:
    """The version of weft."""
    return Check("weft", "ok", metadata.version("weft"))


def check_cores(machine: HostResources | None = None) -> Check:
    """The number of cores for servers."""
    machine = machine or this_machine()
    cores = len(machine.cores)
    quota = "" if machine.owns_cores else f", {machine.quota_cores} by this container's quota"
    return Check("cores", "ok", f"{cores} physical{quota}")


def check_memory(available: int | None = None) -> Check:
    """The free memory for servers."""
    memory = psutil.virtual_memory()
    left = memory.available if available is None else available
    found = f"{left / _GIB:.1f} GiB free of {memory.total / _GIB:.1f}"
    if left < _MIN_MEMORY:
        advice = "stop what else uses memory: a server of a small model takes about 2 GiB"
        return Check("memory", "broken", found, advice)
    return Check("memory", "ok", found)


def check_disk(folder: Path | None = None) -> Check:
    """Whether the disk of the models folder has space for weights."""
    place = folder or models_folder()
    free = shutil.disk_usage(_existing(place)).free
    found = f"{free / _GIB:.1f} GiB free for {place}"
    if free < _MIN_DISK:
        return Check("disk", "broken", found, "free some space, or set WEFT_HOME to another disk")
    return Check("disk", "ok", found)


def check_state_folder(folder: Path | None = None) -> Check:
    """Whether servers can be registered for `weft run`."""
    place = folder or state_folder()
    try:
        with tempfile.TemporaryFile(dir=_existing(place)):
            return Check("state folder", "ok", str(place))
    except OSError as error:
        advice = "set WEFT_STATE_DIR to a folder of your own"
        return Check("state folder", "broken", f"{place}: {error.strerror}", advice)


def _existing(path: Path) -> Path:
    return next((place for place in (path, *path.parents) if place.exists()), Path("/"))


_DEVICES = """
import json, torch
devices = []
if torch.cuda.is_available():
    for index in range(torch.cuda.device_count()):
        device = torch.cuda.get_device_properties(index)
        devices.append([device.name, device.total_memory])
print(json.dumps({"torch": torch.__version__, "devices": devices}))
"""


def check_accelerator(
    load: Callable[[str], ProbeResult] = probe, driver: Callable[[], bool] = has_nvidia
) -> Check:
    """The version of torch, and the GPUs it can use."""
    if find_spec("torch") is None:
        return Check("torch", "missing", "torch is not installed", "pip install 'weft[local]'")
    result = load(_DEVICES)
    if not result.ok:
        advice = "install torch anew: pip install --force-reinstall torch"
        return Check("torch", "broken", f"torch does not load: {result.reason}", advice)
    answer = json.loads(result.answer)
    devices = [f"{name} ({size / 2**30:.0f} GiB)" for name, size in answer["devices"]]
    found = f"{answer['torch']}, {', '.join(devices) or 'no GPU'}"
    if driver() and not devices:
        advice = "this torch cannot use the GPU here: pip install 'weft[vllm]' brings one that can"
        return Check("torch", "broken", found, advice)
    return Check("torch", "ok", found)
