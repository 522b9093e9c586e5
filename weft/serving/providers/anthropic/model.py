"""Model client for the Anthropic Messages API, through the library `anthropic`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Any, Final

import httpx2

from weft.core.errors import WeftError
from weft.core.extras import optional_packages
from weft.core.ports.model import ModelRequest
from weft.serving.providers.answer import ProviderAnswer
from weft.serving.providers.anthropic.body import EFFORTS, body_of, sampled
from weft.serving.providers.anthropic.events import MessageReader
from weft.serving.providers.card import ModelCard
from weft.serving.providers.connections import REQUEST_ID
from weft.serving.providers.failure import StatusFailure
from weft.serving.providers.model import NO_PAGE, ProviderModel

_MEDIA: Final = ("image", "file")
_STATUSES: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Types of errors in the middle of a stream, as the statuses that they have before it."""


class AnthropicModel(ProviderModel):
    """Implements `ModelClient` for a Claude model behind the Anthropic Messages API.

    `base_url` is another address of the same API, without `/v1`; the key of `ANTHROPIC_API_KEY` is
    not sent there. Thoughts are `reasoning`, as far as the API shows them, and are counted in any
    case. Raises: as `ProviderModel`.
    """

    address = "https://api.anthropic.com"
    key_variable = "ANTHROPIC_API_KEY"

    def _connect(self) -> None:
        with optional_packages("models of the Anthropic API"):
            import anthropic
        version = self._options.api_version
        self._library = anthropic
        self._client = anthropic.AsyncAnthropic(
            api_key=self._endpoint.api_key or "none",
            base_url=self._endpoint.base_url,
            http_client=self._connections.http,
            max_retries=0,  # the engine's task
            open_telemetry=False,  # weft has spans of its own
            default_headers={} if version is None else {"anthropic-version": version},
        )

    async def _describe(self) -> ModelCard:
        try:
            told = await self._client.models.retrieve(self.model)
        except self._library.APIStatusError as error:
            if error.status_code not in NO_PAGE:
                raise
            return ModelCard(media=_MEDIA)
        return _card(told)

    def _body(self, request: ModelRequest, card: ModelCard) -> Any:
        older = sampled(request.sampling, self._options, self._who)
        body = body_of(request, card, self._options, self._memory, self._who)
        return {**body, "extra_body": older} if older else body

    async def _open(self, body: Any, request_id: str) -> AsyncGenerator[Any, None]:
        headers = {REQUEST_ID: request_id}
        stream = await self._client.messages.create(
            model=self.model, stream=True, extra_headers=headers, **body
        )
        return _events(stream)

    def _reader(self, answer: ProviderAnswer) -> MessageReader:
        return MessageReader(answer)

    def _answered(self, error: Exception) -> StatusFailure | None:
        if isinstance(error, WeftError) or not isinstance(error, self._library.APIStatusError):
            return None
        status = error.status_code
        if httpx2.codes.is_success(status):
            status = _STATUSES.get(str(error.type), 500)
        body = error.body
        text = json.dumps(body) if isinstance(body, Mapping) else str(body or error.message)
        return StatusFailure(status, text, error.response.headers)


async def _events(stream: Any) -> AsyncGenerator[Any, None]:
    try:
        async for event in stream:
            yield event
    finally:
        await stream.close()


def _card(told: Any) -> ModelCard:
    """The card of a model, from the API's description of it."""
    able = told.capabilities
    card = ModelCard(
        max_output_tokens=_positive(told.max_tokens),
        max_context_tokens=_positive(told.max_input_tokens),
        media=_MEDIA,
    )
    if able is None:
        return card
    media = {"image": "image_input", "file": "pdf_input"}
    modes = getattr(getattr(able, "thinking", None), "types", None)
    return replace(
        card,
        structured_output=_supported(able, "structured_outputs"),
        media=tuple(kind for kind, name in media.items() if _supported(able, name)),
        efforts=_names(getattr(able, "effort", None), EFFORTS),
        thinking_modes=_names(modes, ("adaptive", "enabled", "disabled")),
        budgets_thinking=_supported(modes, "enabled"),
    )


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _supported(group: object, name: str) -> bool:
    return getattr(getattr(group, name, None), "supported", False) is True


def _names(group: object, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Those of `names` that the API says are supported; None where it says nothing of them."""
    if group is None:
        return None
    return tuple(name for name in names if _supported(group, name))
