"""What an endpoint says about itself, and what follows from it.

The protocol itself promises streaming, tools and JSON schemas. Everything else is an extension
that a server is credited with only when it is recognised. vLLM's metrics are read line by line and
not by `prometheus_client`'s parser: that raises at the first line without sense, and a bare
installation does not have it.
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
# Older ones take the field that carries a grammar for one they do not know, and leave it unread.
_GRAMMARS_SINCE = (0, 12)
_PROTOCOL = frozenset({"frequency_penalty", "logit_bias", "presence_penalty"})
_SAMPLING = frozenset({"min_p", "repetition_penalty", "ignore_eos", "min_tokens"})
_EXTENSIONS: Mapping[Kind, frozenset[str]] = {
    "vllm": _SAMPLING | {"bad_words", "chat_template_kwargs", "reasoning_effort"},
    "sglang": _SAMPLING | {"chat_template_kwargs", "reasoning_effort"},
    "llamacpp": frozenset({"min_p", "ignore_eos", "chat_template_kwargs"}),
    "openai": frozenset({"reasoning_effort", "verbosity"}),
}
# What OpenAI allows, and vLLM unless it is started with another `--max-logprobs`.
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
    """A recognised server: its kind, the models it lists, and what it says about ours.

    `drafts`: it decodes speculatively. `diffuses`: it fills canvases in.
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
        """What to expect. `priority` is told by who started the server: it does not say.

        vLLM takes any priority, also where its scheduling policy does not look at it.
        """
        if self.diffuses:
            return self._filling(priority)
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
        )

    def with_metrics(self, page: bytes) -> Server:
        """With what a vLLM server's metrics say: those of drafts are counted where it drafts, those
        of denoising steps where its model is a diffusion model.
        """
        text = page.decode("utf-8", "replace")
        return replace(
            self,
            prefix_caching=_PREFIX_CACHING.search(text) is not None,
            metrics=parse_metrics(page) is not None,
            drafts=_DRAFTS.search(text) is not None,
            diffuses=_DENOISES.search(text) is not None,
        )

    def _filling(self, priority: bool) -> Capabilities:
        """Of vLLM's path for diffusion models."""
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
    """The server that answered `/v1/models` with `listing`; unknown when it makes no sense."""
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
    """The version in what vLLM, and no other server known to us, answers to `/version`.

    (0, 0) for one that is not numbered in its way.
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
    generation_tokens       tokens written so far
    preemptions             requests thrown out of a batch for want of memory
    spec_drafts             how often a draft was verified; `spec_draft_tokens` were in the drafts,
                            of which `spec_accepted_tokens` were kept; all 0 without speculation
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
    """The reading on `page`, or None when it is no vLLM server's. Skips lines without sense."""
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
