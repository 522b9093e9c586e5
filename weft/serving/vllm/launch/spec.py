"""Specification of a deployment, and its JSON form. Names no engine's flags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from weft.core.errors import SpecError
from weft.core.values import AUTOREGRESSIVE, DecodeSpec, Lossless, Lossy

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
Device = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class ServeSpec:
    """One deployment: a model, how it is cut over devices, and how it decodes.

    model                  a name from `weft model list`, a folder with weights, or the name of a
                           model on a hub
    served_name            the model's name for clients; by default its own short name
    tp, pp, dp             ranks of tensor, pipeline and data parallelism within one server
    replicas               separate servers, each with tp * pp * dp ranks, behind one client
    nodes                  machines that one server spans, through vLLM's Ray executor
    decode                 the decoder of all requests
    max_context_tokens     longest prompt and answer together; None: the model's limit
    max_seqs               most requests that are decoded at once
    max_batched_tokens     most tokens in one forward pass
    block_size             tokens of one KV block
    kv_cache_bytes         memory for keys and values, per rank
    eager                  no graph compilation: starts sooner, decodes slower on a GPU.
                           None: eager on a CPU only
    adapters               LoRA adapters by name, each a folder
    tool_parser            vLLM's name of a parser for tool calls in the text
    reasoning_parser       vLLM's name of a parser for reasoning in the text
    api_key_env            the environment variable with the key that clients must send
    extra                  further arguments of the engine, passed on unchanged
    """

    model: str
    served_name: str | None = None
    tp: int = 1
    pp: int = 1
    dp: int = 1
    replicas: int = 1
    nodes: int = 1
    decode: DecodeSpec = AUTOREGRESSIVE
    device: Device = "auto"
    dtype: Dtype = "auto"
    quantization: str | None = None
    max_context_tokens: int | None = None
    max_seqs: int | None = None
    max_batched_tokens: int | None = None
    block_size: int | None = None
    kv_cache_bytes: int | None = None
    chunked_prefill: bool | None = None
    prefix_caching: bool = True
    eager: bool | None = None
    adapters: Mapping[str, str] = field(default_factory=dict)
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    api_key_env: str | None = None
    host: str = "127.0.0.1"
    port: int = 0
    extra: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("tp", "pp", "dp", "replicas", "nodes"):
            if getattr(self, name) < 1:
                raise SpecError(f"`{name}` is {getattr(self, name)}", hint="it counts from 1")
        for name in ("max_context_tokens", "max_seqs", "max_batched_tokens", "block_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SpecError(f"`{name}` is {value}", hint="leave it out, or give 1 or more")
        if not 0 <= self.port <= 65535:
            raise SpecError(f"there is no port {self.port}", hint="0 lets the system choose")
        if self.port and self.replicas > 1 and self.port + self.replicas > 65536:
            raise SpecError(f"{self.replicas} replicas do not fit above port {self.port}")

    @property
    def ranks(self) -> int:
        """Worker processes of one replica, and so devices that it needs."""
        return self.tp * self.pp * self.dp

    @property
    def engine_nodes(self) -> int:
        """Machines over which vLLM distributes its ranks (`--nnodes`). Raises: `SpecError`."""
        return self._count("--nnodes")

    @property
    def local_ranks(self) -> int:
        """Worker processes of one replica on this machine."""
        return max(self.ranks // self.engine_nodes, 1)

    @property
    def headless(self) -> bool:
        """Whether only ranks of another machine's server run here (`--headless`)."""
        return any(flag_of(word) == "--headless" for word in self.extra)

    def _count(self, flag: str) -> int:
        words = iter(self.extra)
        for word in words:
            if flag_of(word) == flag:
                value = word.partition("=")[2] or next(words, "")
                if not re.fullmatch("[1-9][0-9]{0,5}", value):
                    raise SpecError(f"{flag} is {value!r}", hint="it counts from 1")
                return int(value)
        return 1

    @property
    def name(self) -> str:
        """The model's name for clients."""
        return self.served_name or self.model.rstrip("/").rsplit("/", 1)[-1]


def flag_of(word: str) -> str | None:
    """The flag in a word of vLLM's command line: `--A_b.c=1` has `--A-b`."""
    if not re.match(r"--[a-zA-Z]", word):
        return None
    return re.split(r"[=.]", word, maxsplit=1)[0].replace("_", "-")


_FIELDS = tuple(field.name for field in fields(ServeSpec))


def to_form(spec: ServeSpec) -> dict[str, Any]:
    """The spec as plain data for JSON. Of a key it contains the variable's name only."""
    form = {name: getattr(spec, name) for name in _FIELDS}
    form["adapters"] = dict(spec.adapters)
    form["decode"] = {
        "lossless": isinstance(spec.decode, Lossless),
        "method": spec.decode.method,
        "options": [list(option) for option in spec.decode.options],
    }
    form["extra"] = list(spec.extra)
    return form


def from_form(form: Mapping[str, Any]) -> ServeSpec:
    """The inverse of `to_form`. Raises: `ValueError`, `TypeError`, `KeyError`, `SpecError`."""
    if unknown := form.keys() - set(_FIELDS):
        raise ValueError(f"unknown fields: {', '.join(sorted(unknown))}")
    given = dict(form)
    given["decode"] = _decode(form["decode"])
    given["extra"] = tuple(str(word) for word in form["extra"])
    given["adapters"] = {str(name): str(path) for name, path in form["adapters"].items()}
    return ServeSpec(**given)


def _decode(form: Mapping[str, Any]) -> DecodeSpec:
    kind = Lossless if form["lossless"] else Lossy
    return kind(str(form["method"]), tuple((str(name), value) for name, value in form["options"]))
