"""Looks for what weft can do without: optional packages and installed weights. Loads none."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from weft.serving.doctor.check import Check
from weft.serving.weights import installed

_LOCAL = ("torch", "transformers", "llguidance", "safetensors")
_GATEWAY = ("starlette", "uvicorn", "prometheus_client")


def check_local() -> Check:
    """Whether `use: local` runs small models inside the program."""
    return _extra("local", _LOCAL, "small models inside the program", serves=True)


def check_gateway() -> Check:
    """Whether `weft gateway` can serve workflows."""
    return _extra("gateway", _GATEWAY, "workflows behind an OpenAI-compatible API")


def check_mcp() -> Check:
    """Whether MCP servers can lend tools, and workflows be an MCP server."""
    return _extra("mcp", ("mcp",), "tools of MCP servers, workflows as MCP tools")


def check_ray() -> Check:
    """Whether one server can span several machines."""
    return _extra("ray", ("ray",), "one server over several machines with GPUs")


def check_weights() -> Check:
    """The models on weft's shelf."""
    names = [f"{model.name} ({model.size / 1e6:,.0f} MB)" for model in installed()]
    if names:
        return Check("weights", "ok", ", ".join(names))
    return Check("weights", "missing", "no model is here", "weft model list, weft model pull NAME")


def _extra(name: str, packages: Sequence[str], what: str, *, serves: bool = False) -> Check:
    lacking = [package for package in packages if find_spec(package) is None]
    if lacking:
        found = f"{what}: needs {', '.join(lacking)}"
        return Check(f"extra {name}", "missing", found, f"pip install 'weft[{name}]'")
    return Check(f"extra {name}", "ok", what, serves=serves)
