"""Looks for torch and the GPUs that it sees, in a process of its own: a driver may crash it."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec

from weft.serving.doctor.check import Check
from weft.serving.doctor.probe import Probe, probe
from weft.serving.vllm.installed import has_nvidia

_LOOK = """
import json, torch
devices = []
if torch.cuda.is_available():
    for index in range(torch.cuda.device_count()):
        device = torch.cuda.get_device_properties(index)
        devices.append([device.name, device.total_memory])
print(json.dumps({"torch": torch.__version__, "devices": devices}))
"""


def check_accelerator(
    look: Callable[[str], Probe] = probe, driver: Callable[[], bool] = has_nvidia
) -> Check:
    """Which torch this is, and the GPUs it can use."""
    if find_spec("torch") is None:
        return Check("torch", "missing", "torch is not installed", "pip install 'weft[local]'")
    tried = look(_LOOK)
    if not tried.ok:
        advice = "install torch anew: pip install --force-reinstall torch"
        return Check("torch", "broken", f"torch does not load: {tried.reason}", advice)
    said = json.loads(tried.answer)
    devices = [f"{name} ({size / 2**30:.0f} GiB)" for name, size in said["devices"]]
    found = f"{said['torch']}, {', '.join(devices) or 'no GPU'}"
    if driver() and not devices:
        advice = "this torch cannot use the GPU here: pip install 'weft[vllm]' brings one that can"
        return Check("torch", "broken", found, advice)
    return Check("torch", "ok", found)
