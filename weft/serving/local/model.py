"""The client of a local model: one thread decodes requests from any event loop together."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from weft.core.errors import CapabilityError, ModelNotFound, ModelUnavailable
from weft.core.extras import optional_packages
from weft.core.ports.model import AttentionLayout, Capabilities, ModelEvent, ModelRequest
from weft.core.values import Completion, Message
from weft.decoding.adapters.folder import adapter_folder
from weft.decoding.diffusion.models import is_diffusion, tokenizer_folder
from weft.serving.deadline import Deadline
from weft.serving.generation_config import (
    DEFAULT_TEMPERATURE,
    DIFFUSION_TEMPERATURE,
    default_sampling,
)
from weft.serving.local.options import EXTRA_FIELDS, LocalOptions
from weft.serving.local.options import check_diffusion_request as check_diffusion
from weft.serving.local.ticket import Ticket, converted
from weft.serving.local.worker import GroupAssembler, ModelThread
from weft.serving.text import ReasoningStyle, Splitter, separated
from weft.serving.text.reasoning_forms import style_after
from weft.serving.thinking import think_within
from weft.serving.weights import locate

if TYPE_CHECKING:
    from weft.serving.local.ticket import ModelBatcher
    from weft.serving.local.tokenizer import LocalTokenizer


T = TypeVar("T")
_TOP_LOGPROBS = 100
_ROTARY = frozenset({"llama", "mistral", "qwen2", "qwen3"})


class LocalModel:
    """Implements `ModelClient` and `Tokenizing` on torch and transformers, in this process.

    Weights are loaded at the first request. Concurrent requests share every forward pass; they join
    and leave between steps. The sampling of a request depends only on its own seed. Where a request
    leaves temperature, top_p or top_k open, the model's generation config decides; where that does
    not sample, decoding is greedy.

    A schema is enforced token by token and excludes `stop`. An answer that reaches `max_tokens`
    before its JSON is complete is a `ModelOutputError`, retryable where a second draw may be
    shorter. A grammar is enforced in the same way; text cut off by `max_tokens` has that finish
    reason.

    Requests with `attention` are decoded as workers of one group. A cancelled or failed worker
    leaves the others' views at once, except for its finished steps; a finished one stays. A group
    that is not full after `options.group_wait_s` is a `ModelTimeout`. A placed prompt reuses what
    running and recent requests have computed of it. `extra` takes `ignore_eos`: write on to
    `max_tokens`. With `thinking_tokens` the thought comes as reasoning; else it is in the text.

    A diffusion model fills in an answer, several tokens per step if its decoder does, and streams
    it block by block. It has no log probabilities of a text, takes no placement and joins no group;
    `denoised` in its completions has the number of forward passes.

    A folder with an adapter is its base model with changed weights; one that was trained as a
    planner says so in its capabilities.

    Raises: `ModelNotFound` when there is no model `name_or_path`, or no base of an adapter,
        `CapabilityError` for an adapter folder with a wrong config.
    """

    def __init__(
        self,
        name_or_path: str | os.PathLike[str],
        options: LocalOptions | None = None,
        *,
        home: Path | None = None,
    ) -> None:
        self.options = options or LocalOptions()
        self._find = partial(locate, home=home)
        self.path = self._find(name_or_path)
        self.diffuses = is_diffusion(self.path)
        adapter = None if self.diffuses else adapter_folder(self.path, self._find)
        self._base = self.path if adapter is None else adapter.base
        self._plan_form = "" if adapter is None else adapter.plan_form
        self._worker = ModelThread(self._load)
        self._tokens: LocalTokenizer | None = None
        self._tokenizer_lock = threading.Lock()
        self._groups = GroupAssembler(self._worker.submit)
        self._closed = False

    @property
    def model(self) -> str:
        return self.path.name

    @property
    def forwards(self) -> int:
        """Forward passes so far, each over all running requests."""
        return self._worker.forwards

    @property
    def running(self) -> int:
        """Requests that have a row of the batch."""
        return self._worker.running

    async def capabilities(self) -> Capabilities:
        if self.diffuses:
            return Capabilities(
                structured_output=True,
                token_ids=True,
                prompt_token_ids=True,
                priority=True,
                grammar=True,
                continuation=True,
                stop_token_ids=True,
                max_context_tokens=self._context_tokens(),
                extra_fields=tuple(sorted(EXTRA_FIELDS)),
                sampling=default_sampling(self.path, DIFFUSION_TEMPERATURE),
                thinking=True,
            )
        return Capabilities(
            structured_output=True,
            logprobs=True,
            token_ids=True,
            prompt_token_ids=True,
            priority=True,
            prefix_reuse=True,
            grammar=True,
            continuation=True,
            stop_token_ids=True,
            top_logprobs=_TOP_LOGPROBS,
            placement=True,
            layouts=_layouts(self._base),
            max_context_tokens=self._context_tokens(),
            extra_fields=tuple(sorted(EXTRA_FIELDS)),
            sampling=default_sampling(self._base, DEFAULT_TEMPERATURE),
            thinking=True,
            plan_form=self._plan_form,
        )

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if request.sampling.thinking_tokens is None:
            style = await self._style(request)
            events = self._decode(request)
            answer = events if style is None else separated(events, Splitter(style))
        else:
            _check_thinking(request)
            answer = think_within(request, self._decode, self, model=self.model)
        async with aclosing(answer) as stream:
            async for event in stream:
                yield event

    async def _style(self, request: ModelRequest) -> ReasoningStyle | None:
        """The form in which the answer to `request` holds a thought; None: it is all text."""
        wanted = self.options.reasoning
        constrained = request.schema is not None or request.grammar is not None
        if wanted == "none" or not request.messages or constrained or request.attention is not None:
            return None
        given = request.template_kwargs
        if wanted == "auto":
            if self._tokens is not None and not self._tokens.shows_thoughts:
                return None  # without a thread for each request
            found = await self._with_tokenizer(lambda tokens: tokens.reasoning_style(given))
        else:
            found = wanted
        return style_after(found, request.messages[-1].content if request.continues else "")

    async def _decode(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self._check_open()
        _check_possible(request)
        if self.diffuses:
            check_diffusion(request)
        deadline = Deadline(request.timeout_s)
        ticket = Ticket(request, asyncio.get_running_loop())
        timer = self._submit(ticket)
        try:
            while True:
                event = await deadline.wait(ticket.get())
                yield event
                if isinstance(event, Completion):
                    return
        finally:
            ticket.cancelled = True
            if timer is not None:
                timer.cancel()
                self._groups.leave(ticket)

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        """See `Tokenizing`; these four methods need only the tokenizer, and load no weights."""
        return await self._with_tokenizer(
            lambda tokens: tuple(tokens.encode(text) if special else tokens.encode_plain(text))
        )

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        """Special tokens that are spelt out in a message are broken up."""
        unfinished = ModelRequest(messages).continues
        return await self._with_tokenizer(
            lambda tokens: tuple(
                tokens.encode_chat(messages, unfinished, template=chat_template_kwargs)
            )
        )

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        return await self._with_tokenizer(lambda tokens: tokens.decode(token_ids))

    async def special_token(self, text: str) -> int | None:
        return await self._with_tokenizer(lambda tokens: tokens.special_token(text))

    async def aclose(self) -> None:
        self._closed = True
        reason = ModelUnavailable(f"{self.model} was closed", retryable=False)
        self._groups.close(reason)
        await asyncio.to_thread(self._worker.close, reason)

    def _submit(self, ticket: Ticket) -> asyncio.TimerHandle | None:
        """Submit a request; returns the timer of a worker whose group is not full yet."""
        if ticket.request.attention is None:
            self._worker.submit(ticket)
            return None
        wait_s = self.options.group_wait_s
        loop = asyncio.get_running_loop()
        timer = loop.call_later(wait_s, self._groups.give_up, ticket, wait_s)
        self._groups.add(ticket)
        return timer

    async def _with_tokenizer(self, work: Callable[[LocalTokenizer], T]) -> T:
        """`work(tokenizer)` in another thread, since it may first have to be read."""
        self._check_open()
        return await asyncio.to_thread(lambda: work(self._read_tokenizer()))

    def _read_tokenizer(self) -> LocalTokenizer:
        with self._tokenizer_lock:
            if self._tokens is None:
                try:
                    with _packages():
                        from weft.serving.local.tokenizer import LocalTokenizer

                        self._tokens = LocalTokenizer.read(
                            self._tokenizer_folder(), self.options.chat_template_kwargs
                        )
                except (OSError, ValueError) as error:
                    raise converted("the tokenizer cannot be read", error) from error
            return self._tokens

    def _tokenizer_folder(self) -> Path:
        return tokenizer_folder(self.path, locate) if self.diffuses else self._base

    def _check_open(self) -> None:
        if self._closed:
            raise ModelUnavailable(f"{self.model} is closed", retryable=False)

    def _context_tokens(self) -> int | None:
        sizes = [self.options.max_context_tokens, _trained_context(self._base)]
        return min((size for size in sizes if size is not None), default=None)

    def _load(self) -> ModelBatcher:
        with _packages():
            if self.diffuses:
                from weft.serving.local.diffusion.batcher import DiffusionBatcher

                return DiffusionBatcher.load(self.path, self.options)
            from weft.serving.local.autoregressive.batcher import Batcher

            return Batcher.load(self.path, self.options, self._find)


def _check_possible(request: ModelRequest) -> None:
    if request.tools:
        raise CapabilityError(
            "a local model does not call tools",
            hint="ask for JSON with a schema, or serve the model through an endpoint",
        )
    if request.adapter is not None:
        raise CapabilityError("a local model has no adapters", hint="serve it with vLLM")
    if request.top_logprobs > _TOP_LOGPROBS:
        raise CapabilityError(f"a local model reports at most {_TOP_LOGPROBS} top_logprobs")


def _check_thinking(request: ModelRequest) -> None:
    if request.attention is not None or request.placement:
        raise CapabilityError(
            "thinking_tokens and concurrent attention or a placement exclude one another",
            hint="leave thinking_tokens out",
        )


def _packages() -> AbstractContextManager[None]:
    return optional_packages("local models", CapabilityError)


def _trained_context(path: Path) -> int | None:
    tokens = _config(path).get("max_position_embeddings")
    return tokens if isinstance(tokens, int) else None


def _layouts(path: Path) -> tuple[AttentionLayout, ...]:
    """The layouts known for a model of this kind; other models are checked at the first group."""
    return get_args(AttentionLayout) if _config(path).get("model_type") in _ROTARY else ()


def _config(path: Path) -> dict[str, object]:
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelNotFound(f"{path}/config.json cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise ModelNotFound(f"{path}/config.json cannot be read: it is no object")
    return config


class LocalModels:
    """Makes local models, one for each weights and options, and closes them together."""

    def __init__(self, *, home: Path | None = None) -> None:
        self._home = home
        self._models: dict[tuple[Path, LocalOptions], LocalModel] = {}

    def get(
        self, name_or_path: str | os.PathLike[str], options: LocalOptions | None = None
    ) -> LocalModel:
        """The model of these weights and options.

        Raises: `ModelNotFound` with the command that fetches it.
        """
        options = options or LocalOptions()
        path = locate(name_or_path, home=self._home)
        key = (path, options)
        if key not in self._models:
            self._models[key] = LocalModel(path, options)
        return self._models[key]

    async def aclose(self) -> None:
        """Close every model. Harmless when repeated."""
        models = list(self._models.values())
        self._models.clear()
        for model in models:
            await model.aclose()
