"""Several models behind one client: each call goes to the best model for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing
from contextvars import ContextVar
from dataclasses import fields, replace
from typing import Any, Final

from weft.core.errors import (
    CapabilityError,
    Failure,
    ModelError,
    ModelOverloaded,
    ModelUnavailable,
    ServeError,
    WeftError,
)
from weft.core.ports import (
    Capabilities,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Prefilled,
    Startable,
    Tokenizing,
    Warmable,
)
from weft.core.values import Completion, Message, Usage
from weft.planner.choice.ranking import (
    CostWeights,
    LossPredictor,
    ModelChoice,
    ModelProfile,
    RankedModel,
    StaticPredictor,
    rank,
)


async def common_capabilities(clients: Iterable[ModelClient]) -> Capabilities:
    """The common capabilities of `clients` that answer. Raises: the last error, if none does."""
    found: list[Capabilities] = []
    failure: ModelError | None = None
    for client in clients:
        try:
            found.append(await client.capabilities())
        except ModelError as error:
            failure = error
    if not found:
        raise failure or ValueError("there are no clients")
    shared: dict[str, Any] = {
        field.name: all(getattr(each, field.name) for each in found)
        for field in fields(Capabilities)
        if isinstance(field.default, bool)
    }
    adapters = [a for a in found[0].adapters if all(a in each.adapters for each in found)]
    layouts = [one for one in found[0].layouts if all(one in each.layouts for each in found)]
    extra = [
        one for one in found[0].extra_fields if all(one in each.extra_fields for each in found)
    ]
    contexts = [each.max_context_tokens for each in found if each.max_context_tokens is not None]
    return Capabilities(
        **shared,
        top_logprobs=min(each.top_logprobs for each in found),
        layouts=tuple(layouts),
        adapters=tuple(adapters),
        max_context_tokens=min(contexts, default=None),
        extra_fields=tuple(extra),
        sampling=found[0].sampling if len({each.sampling for each in found}) == 1 else None,
    )


_CHARACTERS_PER_TOKEN: Final = 4
_USUAL_ANSWER_TOKENS: Final = 256
_log: ContextVar[Callable[[str], None] | None] = ContextVar("weft_choice_log", default=None)


class RoutedModel:
    """Implements `ModelClient`, `Startable` and `Warmable` over `clients`, by name.

    profiles    the profile of each model; a model without one costs nothing
    predictor   predicts losses by those names; by default those of the profiles
    weights     the price of money, latency and size, in loss
    on_choice   is called once a call has its answer or has failed everywhere

    A call goes to the best model. If that is unavailable or overloaded before the answer has begun,
    the next best takes over; the log of the calling node says so, and the completion names the
    model that answered. A call that a model refuses is not tried elsewhere. Closing it closes the
    clients.
    """

    def __init__(
        self,
        clients: Mapping[str, ModelClient],
        profiles: Mapping[str, ModelProfile] | None = None,
        *,
        predictor: LossPredictor | None = None,
        weights: CostWeights | None = None,
        name: str = "route",
        on_choice: Callable[[ModelChoice], None] | None = None,
    ) -> None:
        if not clients:
            raise ValueError("a choice needs at least one model")
        given = profiles or {}
        if unknown := sorted(given.keys() - clients.keys()):
            raise ValueError(f"there are profiles of models that there are not: {unknown}")
        self._clients = dict(clients)
        self._profiles = {each: given.get(each, ModelProfile()) for each in clients}
        self._predictor = predictor or StaticPredictor({})
        self._weights = weights or CostWeights()
        self._name = name
        self._on_choice = on_choice
        self._closed = False

    @property
    def model(self) -> str:
        return self._name

    async def capabilities(self) -> Capabilities:
        """The capabilities that all models share; several models have no tokens in common."""
        shared = await common_capabilities(self._clients.values())
        one = len(self._clients) == 1
        return shared if one else replace(shared, prompt_token_ids=False, stop_token_ids=False)

    def choose(self, request: ModelRequest) -> tuple[RankedModel, ...]:
        """All models in the order in which `request` would try them."""
        losses = self._predictor.losses(routing_text(request))
        return rank(losses, self._profiles, self._weights, _tokens(request))

    async def start(self, show: Callable[[str], None] | None = None) -> None:
        """Send the log of this task's calls to `show`. A model is started when it is chosen."""
        _log.set(show)

    async def warm(self, request: ModelRequest) -> None:
        """Warm the first choice for `request`."""
        client = self._clients[self.choose(request)[0].model]
        if isinstance(client, Warmable):
            await client.warm(request)

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        """See `Tokenizing`; with several models these four raise `CapabilityError`."""
        return await self._single_client().encode(text, special=special)

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        return await self._single_client().encode_chat(
            messages, chat_template_kwargs=chat_template_kwargs
        )

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        return await self._single_client().decode(token_ids)

    async def special_token(self, text: str) -> int | None:
        return await self._single_client().special_token(text)

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self._check_open()
        if request.prompt_token_ids or request.sampling.stop_token_ids:
            self._check_one()
        choice, errors = ModelChoice(self.choose(request)), list[WeftError]()
        clock, prefilled = asyncio.get_running_loop().time, False
        end_s = None if request.timeout_s is None else clock() + request.timeout_s
        for place in choice.ranked:
            if end_s is not None and errors:
                request = replace(request, timeout_s=end_s - clock())
            begun = False
            try:
                async with aclosing(self._stream(place.model, request)) as stream:
                    async for event in stream:
                        if isinstance(event, Completion):
                            self._report(choice)
                            yield event
                            return
                        if isinstance(event, Prefilled) and prefilled:
                            continue
                        prefilled, begun = True, begun or not isinstance(event, Prefilled)
                        yield event
            except (ModelUnavailable, ModelOverloaded, ServeError) as error:
                self._check_open()
                if begun:
                    raise
                errors.append(error)
                choice = replace(choice, failed=(*choice.failed, (place.model, error.failure())))
                _log_line(f"{self._name}: {place.model} failed: {error}")
        self._report(choice)
        raise _all_failed(self._name, choice.failed, errors)

    async def _stream(self, name: str, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """The stream of one model, started if needed, with its price in the completion."""
        client = self._clients[name]
        if isinstance(client, Startable):
            await client.start(_log.get())
        async with aclosing(client.generate(request)) as stream:
            try:
                async for event in stream:
                    if isinstance(event, Completion):
                        yield replace(event, usage=self._priced(name, event.usage))
                        return
                    yield event
            except ModelError as error:
                if error.usage is not None:
                    error.usage = self._priced(name, error.usage)
                raise
        raise ModelUnavailable(f"the stream of {client.model} ended without a completion")

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        async with AsyncExitStack() as closing:
            for client in self._clients.values():
                closing.push_async_callback(client.aclose)

    def _single_client(self) -> Tokenizing:
        self._check_open()
        self._check_one()
        [client] = self._clients.values()
        if not isinstance(client, Tokenizing):
            raise CapabilityError(f"{client.model} does not tokenize")
        return client

    def _check_one(self) -> None:
        if len(self._clients) > 1:
            raise CapabilityError(
                f"{self._name} chooses among models whose tokens differ",
                hint="name one of them where token ids matter",
            )

    def _check_open(self) -> None:
        if self._closed:
            raise ModelUnavailable(f"{self._name} is closed", retryable=False)

    def _report(self, choice: ModelChoice) -> None:
        if len(choice.failed) < len(choice.ranked):
            _log_line(f"{self._name}: {choice}")
        if self._on_choice is not None:
            self._on_choice(choice)

    def _priced(self, name: str, usage: Usage) -> Usage:
        """`usage` with its price, if the client has not set one."""
        if usage.money:
            return usage
        money = self._profiles[name].money(usage.prompt_tokens, usage.completion_tokens)
        return replace(usage, money=money)


def _log_line(text: str) -> None:
    log = _log.get()
    if log is not None:
        log(text)


def routing_text(request: ModelRequest) -> str:
    """The user's messages; predictors learn from prompts, not from instructions around them."""
    texts = [message.content for message in request.messages if message.role == "user"]
    return "\n".join(texts or [message.content for message in request.messages])


def _tokens(request: ModelRequest) -> tuple[int, int]:
    """An estimate of the tokens of prompt and answer, for the price."""
    characters = sum(len(message.content) for message in request.messages)
    prompt = len(request.prompt_token_ids) or characters // _CHARACTERS_PER_TOKEN
    return prompt, request.sampling.most_tokens or _USUAL_ANSWER_TOKENS


def _all_failed(
    name: str, failed: tuple[tuple[str, Failure], ...], errors: list[WeftError]
) -> ModelError:
    texts = "; ".join(f"{model}: {failure.message}" for model, failure in failed)
    message = f"no model of {name} answers: {texts}"
    overloaded = [error for error in errors if isinstance(error, ModelOverloaded)]
    if len(overloaded) == len(errors):
        delays = [each.retry_after_s for each in overloaded if each.retry_after_s is not None]
        return ModelOverloaded(message, retry_after_s=min(delays, default=None))
    return ModelUnavailable(message, retryable=any(error.retryable for error in errors))
