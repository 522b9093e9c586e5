"""A model client over a vendor's library: discovery, one streamed answer, errors, cancellation."""

from __future__ import annotations

import asyncio
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any

from weft.core.errors import ModelError, ModelOutputError, ModelUnavailable
from weft.core.ports.model import Capabilities, Delta, ModelEvent, ModelRequest
from weft.core.values import Completion
from weft.serving.deadline import Deadline
from weft.serving.openai.answer import check_schema
from weft.serving.openai.endpoint import Endpoint
from weft.serving.providers.answer import AnswerMemory, ProviderAnswer
from weft.serving.providers.card import ModelCard
from weft.serving.providers.connections import ProviderConnections
from weft.serving.providers.failure import StatusFailure, missing_key, provider_failure
from weft.serving.providers.options import ProviderOptions
from weft.serving.providers.refusals import check_request
from weft.validation import read_answer_async

_MALFORMED = (AttributeError, LookupError, TypeError, ValueError, Warning)
NO_PAGE = frozenset({404, 405, 501})
"""Statuses of an API, or a proxy of one, that does not describe its models."""


class EventReader(ABC):
    """Reads the events of one answer into a `ProviderAnswer`."""

    @abstractmethod
    def read(self, event: Any) -> list[Delta]:
        """The deltas of one event of the vendor's library."""

    @property
    @abstractmethod
    def blocks(self) -> list[Any]:
        """The answer in the API's own form, for the next turn."""


class ProviderModel(ABC):
    """Implements `ModelClient` for one model of a hosted API.

    The key is `api_key`, or the value of the environment variable `api_key_env`; without either it
    is that of the API's usual variable, which is sent to the API's own address only.

    Raises: `ValueError` for a wrong `base_url`; `BuildError` where the library is missing.
    """

    address: str
    """Where the API is."""
    key_variable: str
    """The environment variable that usually holds its key."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api_key_env: str | None = None,
        headers: Mapping[str, str] | None = None,
        options: ProviderOptions | None = None,
    ) -> None:
        self._options = options or ProviderOptions()
        variable = api_key_env or (self.key_variable if base_url is None else None)
        if api_key is None and variable is not None:
            api_key = os.environ.get(variable) or None
        self._endpoint = Endpoint(
            base_url or self.address,
            model,
            api_key,
            variable,
            dict(headers or {}),
            self._options.connect_timeout_s,
            self._options.idle_timeout_s,
            self._options.connections,
        )
        self._memory = AnswerMemory()
        self._connections = ProviderConnections(self._endpoint)
        self._card: ModelCard | None = None
        self._discovering = asyncio.Lock()
        self._closed = False
        self._connect()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    @property
    def model(self) -> str:
        return self._endpoint.model

    async def capabilities(self) -> Capabilities:
        with self._converted():
            return (await self._discover()).capabilities()

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        with self._converted():
            deadline = Deadline(request.timeout_s)
            card = await deadline.wait(self._discover())
            request = self._options.without_ignored(request)
            check_request(request, self._who, card)
            if request.schema is not None:
                await check_schema(request.schema)
            body = self._body(request, card)
            answer = ProviderAnswer(
                request, self.model, self._options.price, self._options.max_answer_chars
            )
            reader = self._reader(answer)
            async with aclosing(deadline.each(self._events(body, reader))) as deltas:
                async for delta in deltas:
                    yield delta
            with _counted(answer):
                completion = answer.completion()
                await _check_answer(request, answer, completion)
            if completion.tool_calls:
                self._memory.add(completion, reader.blocks)
            yield completion

    async def aclose(self) -> None:
        self._closed = True
        await self._connections.aclose()

    @property
    def _who(self) -> str:
        return f"{self.model} behind {self._endpoint.base_url}"

    @abstractmethod
    def _connect(self) -> None:
        """Import the vendor's library and make its client of the endpoint and the options.

        Raises: `BuildError` where the library is missing.
        """

    @abstractmethod
    async def _describe(self) -> ModelCard:
        """What the API tells of the model."""

    @abstractmethod
    def _body(self, request: ModelRequest, card: ModelCard) -> Any:
        """The call's arguments. Raises: `CapabilityError`, `ModelRequestError`."""

    @abstractmethod
    async def _open(self, body: Any, request_id: str) -> AsyncGenerator[Any, None]:
        """Send a call under that id; the events of its answer."""

    @abstractmethod
    def _reader(self, answer: ProviderAnswer) -> EventReader:
        """A reader of one answer's events."""

    @abstractmethod
    def _answered(self, error: Exception) -> StatusFailure | None:
        """What the server said, if `error` is that it refused or failed."""

    async def _events(self, body: Any, reader: EventReader) -> AsyncGenerator[Delta, None]:
        request_id = uuid.uuid4().hex
        try:
            with self._well_formed():
                async with aclosing(await self._open(body, request_id)) as events:
                    async for event in events:
                        for delta in reader.read(event):
                            yield delta
        finally:
            await self._connections.end(request_id)

    async def _discover(self) -> ModelCard:
        if self._endpoint.api_key is None and self._endpoint.api_key_env is not None:
            raise missing_key(self._endpoint)
        async with self._discovering:
            if self._card is None:
                with self._well_formed():
                    self._card = await self._describe()
            return self._card

    @contextmanager
    def _well_formed(self) -> Iterator[None]:
        """A context for reading the wire, which the libraries do not check."""
        try:
            yield
        except _MALFORMED as error:
            if self._answered(error) is not None:
                raise
            what = f"the server sent what is no answer: {type(error).__name__}"
            raise ModelUnavailable(what, hint="does base_url lead to this API?") from None
        except RecursionError:  # libraries parse answers that were asked for as JSON
            raise ModelOutputError("the answer is nested too deeply") from None

    @contextmanager
    def _converted(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 (a boundary: only weft's errors leave it)
            failed = provider_failure(error, self._endpoint, self._answered(error))
            if self._closed:
                failed = ModelUnavailable(f"the client of {self.model} is closed", retryable=False)
            raise failed from None


async def _check_answer(
    request: ModelRequest, answer: ProviderAnswer, completion: Completion
) -> None:
    """Raises: `ModelOutputError` for an answer that does not fit the request's schema."""
    ended = completion.tool_calls or completion.finish_reason == "refused"
    if request.schema is not None and not ended:
        cut_at = answer.cut_at(completion)
        await read_answer_async(completion.text, request.schema, cut_at=cut_at)


@contextmanager
def _counted(answer: ProviderAnswer) -> Iterator[None]:
    """Add usage to the error of an invalid answer, which was paid for."""
    try:
        yield
    except ModelError as error:
        error.usage = answer.usage
        raise
