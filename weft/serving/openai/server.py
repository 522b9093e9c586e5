"""Detects what kind of server an endpoint is, and its capabilities.

The protocol itself promises streaming, tools and JSON schemas. Every other capability is an
extension that requires a recognised server. vLLM's metrics are matched line by line:
`prometheus_client`'s parser raises at the first malformed line, and is not part of a bare
installation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, ValidationError

from weft.core.ports.model import Capabilities

Kind = Literal["vllm", "sglang", "llamacpp", "openai", "other"]

_OWNERS: Mapping[str, Kind] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llamacpp",
    "openai": "openai",
    "openai-internal": "openai",
    "system": "openai",
}
SELF_HOSTED: frozenset[Kind] = frozenset({"vllm", "sglang", "llamacpp"})
# Older ones ignore the field that carries a grammar.
_GRAMMARS_SINCE = (0, 12)
_PROTOCOL = frozenset({"frequency_penalty", "logit_bias", "presence_penalty"})
_SAMPLING = frozenset({"min_p", "repetition_penalty", "ignore_eos", "min_tokens"})
_EXTENSIONS: Mapping[Kind, frozenset[str]] = {
    "vllm": _SAMPLING | {"bad_words", "chat_template_kwargs", "reasoning_effort"},
    "sglang": _SAMPLING | {"chat_template_kwargs", "reasoning_effort"},
    "llamacpp": frozenset({"min_p", "ignore_eos", "chat_template_kwargs"}),
    "openai": frozenset({"reasoning_effort", "verbosity"}),
}
# The limit of OpenAI, and of vLLM unless it is started with another `--max-logprobs`.
_TOP_LOGPROBS = 20
_NUMBERS = re.compile(r"v?(\d{1,6})\.(\d{1,6})")
_PREFIX_CACHING = re.compile(
    r'^vllm:cache_config_info\{[^}]*enable_prefix_caching="True"', re.MULTILINE
)
_DENOISES = re.compile(r"^vllm:diffusion_num_denoising_steps", re.MULTILINE)
_DRAFTS = re.compile(r"^vllm:spec_decode_num_drafts", re.MULTILINE)


class _Meta(BaseModel):
    n_ctx: int | None = None


class _Model(BaseModel):
    id: str = ""
    owned_by: str | None = None
    root: str | None = None
    parent: str | None = None
    max_model_len: int | None = None
    context_length: int | None = None
    context_window: int | None = None
    meta: _Meta | None = None

    def context(self) -> int | None:
        in_meta = self.meta.n_ctx if self.meta else None
        return self.max_model_len or self.context_length or self.context_window or in_meta


class _Listing(BaseModel):
    data: list[_Model] = []


@dataclass(frozen=True, slots=True)
class Server:
    """A recognised server: its kind, its models, and the properties of the client's model.

    `drafts`: it decodes speculatively. `diffuses`: its model is a diffusion model.
    """

    kind: Kind = "other"
    models: tuple[str, ...] = ()
    max_context_tokens: int | None = None
    adapters: tuple[str, ...] = ()
    prefix_caching: bool = False
    metrics: bool = False
    version: tuple[int, int] | None = None
    drafts: bool = False
    diffuses: bool = False

    def capabilities(self, priority: bool) -> Capabilities:
        """Capabilities; `priority` is the client's option, as servers do not report it.

        vLLM accepts any priority, even where its scheduling policy ignores it.
        """
        if self.diffuses:
            return self._diffusion_capabilities(priority)
        return Capabilities(
            structured_output=True,
            tools=True,
            logprobs=self.kind in SELF_HOSTED or self.kind == "openai",
            token_ids=self.kind == "vllm",
            prompt_token_ids=self.kind in SELF_HOSTED,
            priority=priority,
            prefix_reuse=self.prefix_caching,
            prompt_logprobs=self.kind == "vllm",
            metrics=self.metrics,
            grammar=self.version is not None and self.version >= _GRAMMARS_SINCE,
            continuation=self.kind == "vllm",
            stop_token_ids=self.kind in {"vllm", "sglang"},
            top_logprobs=_TOP_LOGPROBS if self.kind in {"vllm", "openai"} else 0,
            adapters=self.adapters,
            max_context_tokens=self.max_context_tokens,
            extra_fields=tuple(sorted(_PROTOCOL | _EXTENSIONS.get(self.kind, frozenset()))),
            media=("image", "audio") if self.kind in SELF_HOSTED else ("image", "audio", "file"),
        )

    def with_metrics(self, page: bytes) -> Server:
        """The server with what its vLLM metrics show: drafts if it counts them, a diffusion model
        if it counts denoising steps.
        """
        text = page.decode("utf-8", "replace")
        return replace(
            self,
            prefix_caching=_PREFIX_CACHING.search(text) is not None,
            metrics=parse_metrics(page) is not None,
            drafts=_DRAFTS.search(text) is not None,
            diffuses=_DENOISES.search(text) is not None,
        )

    def _diffusion_capabilities(self, priority: bool) -> Capabilities:
        """Capabilities of vLLM's path for diffusion models."""
        return Capabilities(
            token_ids=True,
            prompt_token_ids=True,
            priority=priority,
            metrics=self.metrics,
            continuation=True,
            stop_token_ids=True,
            max_context_tokens=self.max_context_tokens,
        )


def recognise(listing: bytes | None, model: str) -> Server:
    """The server that answered `/v1/models` with `listing`; of unknown kind if malformed."""
    if listing is None:
        return Server()
    try:
        models = _Listing.model_validate_json(listing).data
    except ValidationError:
        return Server()
    ours = next((entry for entry in models if entry.id == model), None)
    if ours is None and len(models) == 1:
        ours = models[0]
    if ours is None:
        return Server(models=tuple(entry.id for entry in models))
    base = next((entry for entry in models if entry.id == ours.parent), ours)
    return Server(
        _OWNERS.get((ours.owned_by or "").lower(), "other"),
        tuple(entry.id for entry in models),
        ours.context() or base.context(),
        _adapters(base, models),
    )


def _adapters(base: _Model, models: Sequence[_Model]) -> tuple[str, ...]:
    """The adapters of `base`, which may be listed under several names with one root."""
    names = {base.id} | {entry.id for entry in models if base.root and entry.root == base.root}
    return tuple(entry.id for entry in models if entry.parent in names)


def vllm_version(answer: bytes | None) -> tuple[int, int] | None:
    """The version in an answer to `/version`, which of all known servers only vLLM serves.

    (0, 0) for other numbering schemes.
    """
    if answer is None:
        return None
    try:
        version = _Version.model_validate_json(answer).version
    except ValidationError:
        return None
    numbers = _NUMBERS.match(version)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0) if version else None


class _Version(BaseModel, extra="forbid"):
    version: str


_SAMPLE = re.compile(
    r'^vllm:(\w+?)(?:_total)?(?:\{(?:[^"}\n]|"(?:[^"\\\n]|\\.)*")*\})?[ \t]+(\S+)', re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class ServerMetrics:
    """One reading, over all engines of the server.

    running, waiting        requests now in a batch, and before it
    kv_usage                part of the KV cache in use, 0 to 1; the mean over engines
    prefix_queries, _hits   prompt tokens looked up in the prefix cache, and found there
    prompt_tokens           tokens of all prompts so far, the cached ones included
    generation_tokens       tokens generated so far
    preemptions             requests removed from a batch for lack of memory
    spec_drafts             verified drafts; `spec_draft_tokens` were in them, of which
                            `spec_accepted_tokens` were accepted; all 0 without speculation
    """

    running: int
    waiting: int
    kv_usage: float
    prefix_queries: int
    prefix_hits: int
    prompt_tokens: int
    generation_tokens: int
    preemptions: int
    spec_drafts: int = 0
    spec_draft_tokens: int = 0
    spec_accepted_tokens: int = 0

    @property
    def prefix_hit_rate(self) -> float:
        """Hits per query, 0 before the first."""
        return self.prefix_hits / self.prefix_queries if self.prefix_queries else 0.0


def parse_metrics(page: bytes) -> ServerMetrics | None:
    """The reading on `page`, or None unless it is a vLLM server's. Skips malformed lines."""
    found: dict[str, list[float]] = {}
    for name, value in _samples(page.decode("utf-8", "replace")):
        found.setdefault(name, []).append(value)
    if "num_requests_running" not in found:
        return None

    def total(name: str) -> int:
        return round(sum(found.get(name, ())))

    usage = found.get("kv_cache_usage_perc", [0.0])
    return ServerMetrics(
        running=total("num_requests_running"),
        waiting=total("num_requests_waiting"),
        kv_usage=sum(usage) / len(usage),
        prefix_queries=total("prefix_cache_queries"),
        prefix_hits=total("prefix_cache_hits"),
        prompt_tokens=total("prompt_tokens"),
        generation_tokens=total("generation_tokens"),
        preemptions=total("num_preemptions"),
        spec_drafts=total("spec_decode_num_drafts"),
        spec_draft_tokens=total("spec_decode_num_draft_tokens"),
        spec_accepted_tokens=total("spec_decode_num_accepted_tokens"),
    )


def _samples(page: str) -> Iterator[tuple[str, float]]:
    for match in _SAMPLE.finditer(page):
        try:
            value = float(match[2])
        except ValueError:
            continue
        if math.isfinite(value):
            yield match[1], value
