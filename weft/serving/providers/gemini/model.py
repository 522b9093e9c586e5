"""Model client for the Gemini API (generateContent), through the library `google-genai`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

from weft.core.errors import ModelRequestError, WeftError
from weft.core.extras import optional_packages
from weft.core.foreign import retry_after_s
from weft.core.ports.model import ModelRequest
from weft.serving.providers.answer import ProviderAnswer
from weft.serving.providers.card import ModelCard
from weft.serving.providers.connections import REQUEST_ID
from weft.serving.providers.failure import StatusFailure
from weft.serving.providers.gemini.body import config_of, contents_of
from weft.serving.providers.gemini.events import ChunkReader
from weft.serving.providers.model import NO_PAGE, ProviderModel

_MEDIA = ("image", "audio", "file")


class GeminiModel(ProviderModel):
    """Implements `ModelClient` for a Gemini model behind Google's Gemini API.

    `base_url` is another address of the same API, without its version; the key of `GEMINI_API_KEY`
    is not sent there. Thoughts are `reasoning`, as far as the API shows them, and are counted in
    any case. Raises: as `ProviderModel`.
    """

    address = "https://generativelanguage.googleapis.com"
    key_variable = "GEMINI_API_KEY"

    def _connect(self) -> None:
        with optional_packages("models of the Gemini API"):
            import google.genai.errors
            import google.genai.types
        self._library = google.genai
        self._client = google.genai.Client(
            vertexai=False,
            api_key=self._endpoint.api_key or "none",
            # Without retries: they are the engine's task.
            http_options=google.genai.types.HttpOptions(
                base_url=self._endpoint.base_url,
                api_version=self._options.api_version or "v1beta",
                httpx_async_client=self._connections.http,
            ),
        )

    async def aclose(self) -> None:
        self._client.close()  # the library's other client, which is not used
        await super().aclose()

    async def _describe(self) -> ModelCard:
        try:
            told = await self._client.aio.models.get(model=self.model)
        except self._library.errors.APIError as error:
            if error.code not in NO_PAGE:
                raise
            return ModelCard(media=_MEDIA)
        return ModelCard(
            max_output_tokens=told.output_token_limit,
            max_context_tokens=told.input_token_limit,
            media=_MEDIA,
            thinks=told.thinking,
            budgets_thinking=bool(told.thinking),
        )

    def _body(self, request: ModelRequest, card: ModelCard) -> Any:
        types = self._library.types
        config = config_of(request, card, self._options, self._who)
        contents = contents_of(request, self._memory, self._who)
        try:
            return (
                [types.Content.model_validate(turn) for turn in contents],
                types.GenerateContentConfig.model_validate(config),
            )
        except ValueError as error:  # pydantic's, whose text repeats the prompt
            kinds = {each["type"] for each in getattr(error, "errors", list)()}
            raise ModelRequestError(
                f"the request cannot be sent: {', '.join(sorted(kinds)) or type(error).__name__}"
            ) from None

    async def _open(self, body: Any, request_id: str) -> AsyncGenerator[Any, None]:
        contents, config = body
        config.http_options = self._library.types.HttpOptions(headers={REQUEST_ID: request_id})
        stream: Any = await self._client.aio.models.generate_content_stream(
            model=self.model, contents=contents, config=config
        )
        return _chunks(stream)

    def _reader(self, answer: ProviderAnswer) -> ChunkReader:
        return ChunkReader(answer)

    def _answered(self, error: Exception) -> StatusFailure | None:
        if isinstance(error, WeftError) or not isinstance(error, self._library.errors.APIError):
            return None
        headers = dict(getattr(error.response, "headers", None) or {})
        if retry_after_s(headers) is None and (delay := _delay(error.details)) is not None:
            headers["retry-after"] = delay
        text = error.message or json.dumps(error.details)
        code: object = error.code  # in a stream, what the wire says
        return StatusFailure(code if isinstance(code, int) else 500, str(text), headers)


async def _chunks(stream: Any) -> AsyncGenerator[Any, None]:
    try:
        async for chunk in stream:
            yield chunk
    finally:
        await stream.aclose()


def _delay(details: object) -> str | None:
    """The seconds that an error asks to wait, from the details that this API gives of it."""
    error = details.get("error") if isinstance(details, dict) else None
    listed = error.get("details") if isinstance(error, dict) else None
    for each in listed if isinstance(listed, list) else ():
        delay = each.get("retryDelay") if isinstance(each, dict) else None
        if isinstance(delay, str) and delay.endswith("s"):
            return delay.removesuffix("s")
    return None
