"""Model client for any OpenAI-compatible endpoint: vLLM, SGLang, llama.cpp, or a hosted one."""

from __future__ import annotations

import asyncio
import os
import re
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

from weft.core.errors import (
    CapabilityError,
    ModelError,
    ModelRequestError,
    ModelUnavailable,
    WeftError,
)
from weft.core.generated_text import THINK_END
from weft.core.loggers import logger
from weft.core.ports.model import Capabilities, ModelEvent, ModelRequest
from weft.core.values import Message, Usage
from weft.serving.deadline import Deadline
from weft.serving.openai.answer import StreamedAnswer, check_schema
from weft.serving.openai.body import (
    body_of,
    check_extra,
    with_diffusion_arguments,
    with_node_name,
    with_template,
)
from weft.serving.openai.contract import ProgramContract, salt_of
from weft.serving.openai.endpoint import Endpoint, Price
from weft.serving.openai.server import (
    Server,
    ServerMetrics,
    parse_metrics,
    recognise,
    vllm_version,
)
from weft.serving.openai.thinking import ThinkingSwitch, goes_by_ids, merged, switch_of
from weft.serving.text import FORMATS, FormatName, ReasoningStyle, Splitter, spell
from weft.serving.text.reasoning_forms import style_after
from weft.serving.thinking import think_within
from weft.validation import read_answer_async

if TYPE_CHECKING:
    from weft.serving.openai.tokenizer import ServerTokenizer


@dataclass(frozen=True, slots=True)
class TextDialect:
    """How reasoning and tool calls appear in the text; None where the server separates them.

    Raises: `ValueError` for unknown names.
    """

    reasoning: ReasoningStyle | None = None
    tool_format: FormatName | None = None

    def __post_init__(self) -> None:
        styles = get_args(ReasoningStyle)
        if self.reasoning is not None and self.reasoning not in styles:
            raise ValueError(f"reasoning is one of {', '.join(styles)}, not {self.reasoning!r}")
        if self.tool_format is not None and self.tool_format not in FORMATS:
            there = ", ".join(FORMATS)
            raise ValueError(f"tool_format is one of {there}, not {self.tool_format!r}")

    def prepare(self, request: ModelRequest) -> tuple[ModelRequest, Splitter | None]:
        """The request for the server, and a splitter for reasoning and calls in its answer.

        None where the whole text is the answer: after prompts of token ids, which are continued,
        and under a schema or grammar, which applies from the first character.
        """
        if not request.messages:
            return request, None
        sent = request
        if self.tool_format is not None:
            sent = spell(request, self.tool_format)
        constrained = sent.schema is not None or sent.grammar is not None
        return sent, None if constrained else self._splitter(request)

    def hides_thoughts(self, request: ModelRequest) -> bool:
        """Whether the marks of a thought are special tokens, which a server leaves out of the text
        after a prompt of token ids: thought and answer would be one text.
        """
        return bool(request.prompt_token_ids) and self.reasoning in ("mistral", "harmony")

    def unmarked(self, request: ModelRequest) -> bool:
        """Whether the answer may begin with a thought of which nothing was configured: servers
        without a parser leave it in the text.
        """
        whole = request.continues or request.schema is not None or request.grammar is not None
        return self.reasoning is None and bool(request.messages) and not whole

    def _splitter(self, request: ModelRequest) -> Splitter | None:
        spelling = None
        if self.tool_format is not None and request.tools and request.tool_choice != "none":
            spelling = FORMATS[self.tool_format]
        if self.reasoning is None and spelling is None:
            return None
        begun = request.messages[-1].content if request.continues else ""
        style = style_after(self.reasoning, begun)
        return Splitter(style, spelling, [tool.name for tool in request.tools])


_logger = logger("models")
_DRAIN_S = 0.25
_OTHER_DIALECT = "Invalid grammar specification"


class OpenAIModel:
    """Implements `ModelClient` and `Tokenizing` over HTTP; belongs to the loop that uses it first.

    `base_url` ends in `/v1` for most servers. The key is `api_key`, or the value of the environment
    variable `api_key_env`; servers without keys need neither. `idle_timeout_s` is the longest
    silence within an answer, `connections` the most requests in flight. `price` adds money to
    usage. `extra_body` goes into every request; of its `chat_template_kwargs`, which tokenizing
    sends too, those of a request win. `max_answer_chars` bounds one answer. Servers do
    not report two properties: `priority`, that the server was started with priority scheduling, and
    `decoder`, the name of its decoder in reports.

    `context` names the forms in which requests say what is known of their program, for routers:
    "session", "vllm_router", "dynamo", "dynamo_1_2" (docs/serving/program-contract.md). The prefix
    cache is shared only with clients that have the same secret in the environment variable
    `cache_salt_env`.

    For servers without a parser: `reasoning` finds reasoning in the text: "think" (`<think>`),
    "think-open" where the prompt ends with that tag, "mistral" (`[THINK]`), "granite" (its tags and
    its words), "harmony" (channels of gpt-oss). `tool_format` ("hermes", "json", "mistral")
    describes tools in the system prompt and finds calls in the text. Malformed calls stay text.
    Without `reasoning`, a completion still has no `<think>` thought in its text: it is reasoning.
    Streamed pieces of it are text, since its first tag may be missing.

    `thinking_tokens` of a request: on vLLM the client ends the thought itself. `thinking` names
    fields of the body instead: `{"off": {"reasoning_effort": "none"}, "budget": "FIELD"}`, what
    switches a thought off, and the field for its most tokens.

    Raises: `ValueError` for a wrong `base_url`, `reasoning`, `tool_format`, `thinking`, `context`
    or `cache_salt_env`; `ModelRequestError` for a wrong `extra_body`.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        api_key_env: str | None = None,
        headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        price: Price | None = None,
        connect_timeout_s: float = 10.0,
        idle_timeout_s: float = 300.0,
        connections: int = 128,
        max_answer_chars: int = 4_000_000,
        priority: bool = False,
        decoder: str = "speculative",
        reasoning: ReasoningStyle | None = None,
        tool_format: FormatName | None = None,
        context: Collection[str] = (),
        cache_salt_env: str | None = None,
        thinking: Mapping[str, Any] | None = None,
    ) -> None:
        check_extra(extra_body or {})
        self._switch = ThinkingSwitch.of(thinking)
        if api_key is None and api_key_env is not None:
            api_key = os.environ.get(api_key_env)
        salt = None if cache_salt_env is None else salt_of(os.environ.get(cache_salt_env, ""))
        self._contract = ProgramContract(context, salt)
        # Slow to import: only clients of HTTP servers wait for it, and not during a run.
        from weft.serving.openai.tokenizer import ServerTokenizer
        from weft.serving.openai.transport import Transport

        self._endpoint = Endpoint(
            base_url,
            model,
            api_key,
            api_key_env,
            dict(headers or {}),
            connect_timeout_s,
            idle_timeout_s,
            connections,
            salt,
        )
        self._dialect = TextDialect(reasoning, tool_format)
        self._transport = Transport(self._endpoint)
        self._extra_body = dict(extra_body or {})
        self._tokens = ServerTokenizer(self._transport, self._endpoint, self._extra_body)
        self._price = price
        self._max_answer_chars = max_answer_chars
        self._priority = priority
        self._decoder = decoder
        self._server: Server | None = None
        self._discovering = asyncio.Lock()
        self._tokenizes: bool | None = None
        self._warned_of_usage = False
        self._closed = False

    def __repr__(self) -> str:
        return f"OpenAIModel({self._endpoint.base_url!r}, {self.model!r})"

    @property
    def model(self) -> str:
        return self._endpoint.model

    async def capabilities(self) -> Capabilities:
        with self._converted():
            server = await self._discover()
            thinking = switch_of(self._switch, server) != ThinkingSwitch()
            return replace(server.capabilities(self._priority), thinking=thinking)

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        answer = self._answer(request)
        if request.sampling.thinking_tokens is not None:
            deadline = Deadline(request.timeout_s)
            with self._converted(request):
                server = await deadline.wait(self._discover())
            by_ids = goes_by_ids(request, server, self._switch)
            if by_ids and await deadline.wait(self._reaches_tokenizer()):
                request = replace(request, timeout_s=deadline.left_s)
                answer = think_within(
                    request, self._answer, self, model=self.model, money=self._money
                )
        async with aclosing(answer) as stream:
            async for event in stream:
                yield event

    async def _reaches_tokenizer(self) -> bool:
        """Whether the server tokenizes: routers and proxies may pass `/v1` on and nothing else."""
        if self._tokenizes is None:
            try:
                await self.special_token(THINK_END)
                self._tokenizes = True
            except CapabilityError:
                self._tokenizes = False
        return self._tokenizes

    def _money(self, usage: Usage) -> float:
        price = self._price
        if price is None:
            return 0.0
        return price.money(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)

    async def _answer(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        with self._converted(request):
            deadline = Deadline(request.timeout_s)
            server = await deadline.wait(self._discover())
            if request.schema is not None:
                await check_schema(request.schema)
            sent, splitter = self._dialect.prepare(request)
            tagged = splitter is not None or self._dialect.hides_thoughts(request)
            body = self._body(sent, server, tagged=tagged)
            body = self._contract.written(body, request, server, deadline.left_s)
            answer = StreamedAnswer(
                request,
                self.model,
                self._price,
                self._max_answer_chars,
                splitter,
                decoder=self._decoder,
                unmarked=self._dialect.unmarked(request),
            )
            headers = _headers(deadline) | self._contract.headers(request)
            stream = self._transport.answer(body, headers)
            async with aclosing(deadline.each(stream)) as payloads:
                async for payload in payloads:
                    for event in answer.take(payload):
                        yield event
                    if answer.stopped:
                        break
                    if answer.done:
                        await _drain(payloads)
                        break
            for delta in answer.finish():
                yield delta
            with _counted(answer):
                completion = answer.completion()
                if request.schema is not None and not completion.tool_calls:
                    cut_at = answer.cut_at(completion)
                    await read_answer_async(completion.text, request.schema, cut_at=cut_at)
            self._contract.answered(request, completion)
            self._check_counted(answer)
            yield completion

    def _check_counted(self, answer: StreamedAnswer) -> None:
        """Warn once of a server that reports no usage."""
        if not (answer.counted or self._warned_of_usage):
            self._warned_of_usage = True
            _logger.warning(
                "%s reports no usage: budgets and limits count the pieces of its answers, and no"
                " prompts",
                self._endpoint.base_url,
            )

    async def metrics(self) -> ServerMetrics:
        """Current counts of the server.

        Raises: `CapabilityError` when it has no such page; the errors of any request.
        """
        with self._converted():
            page = await self._transport.get(self._endpoint.root_url("metrics"))
            reading = parse_metrics(page) if page is not None else None
            if reading is None:
                raise CapabilityError(
                    f"{self._endpoint.base_url} has no metrics of vLLM",
                    hint="only vLLM servers have, beside /v1, where no proxy hides them",
                )
            return reading

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        """See `Tokenizing`; these four raise `CapabilityError` for servers other than vLLM."""
        async with self._tokenizing() as tokens:
            return await tokens.encode(text, special)

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        """Special tokens spelt out in a message are broken up."""
        async with self._tokenizing() as tokens:
            return await tokens.encode_chat(messages, chat_template_kwargs=chat_template_kwargs)

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        async with self._tokenizing() as tokens:
            return await tokens.decode(token_ids)

    async def special_token(self, text: str) -> int | None:
        async with self._tokenizing() as tokens:
            return await tokens.special_token(text)

    async def aclose(self) -> None:
        self._closed = True
        await self._transport.aclose()

    def _body(self, request: ModelRequest, server: Server, *, tagged: bool) -> dict[str, Any]:
        offered = server.capabilities(self._priority)
        body = body_of(request, server, offered, tagged=tagged)
        whole = {**self._extra_body, **body, "model": request.adapter or self.model}
        whole = with_template(whole, self._extra_body, body)
        if (thinking := request.sampling.thinking_tokens) is not None:
            whole = merged(whole, switch_of(self._switch, server).fields(thinking))
        return with_node_name(with_diffusion_arguments(whole, request, server), request, server)

    @contextmanager
    def _converted(self, request: ModelRequest | None = None) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 (a boundary: only weft's errors leave it)
            failed = self._transport.failure(error, self._server.models if self._server else ())
            if request is not None and request.grammar is not None:
                failed = _grammar_failure(failed)
            if request is not None and request.sampling.thinking_tokens is not None:
                failed = _thinking_failure(failed)
            if request is not None and any(each.media for each in request.messages if each.parts):
                failed = _media_failure(failed, self.model)
            if self._closed:
                failed = ModelUnavailable(f"the client of {self.model} is closed", retryable=False)
            raise failed from None

    @asynccontextmanager
    async def _tokenizing(self) -> AsyncIterator[ServerTokenizer]:
        with self._converted():
            if (await self._discover()).kind != "vllm":
                raise CapabilityError(
                    f"{self._endpoint.base_url} is not known to tokenize",
                    hint="vLLM does, and so does a local model",
                )
            yield self._tokens

    async def _discover(self) -> Server:
        async with self._discovering:
            if self._server is None:
                self._server = await self._detect()
            return self._server

    async def _detect(self) -> Server:
        transport, endpoint = self._transport, self._endpoint
        server = recognise(await transport.get(endpoint.url("models")), self.model)
        if server.kind in {"other", "vllm"}:
            version = vllm_version(await transport.find(endpoint.root_url("version")))
            kind = server.kind if version is None else "vllm"
            server = replace(server, kind=kind, version=version)
        if server.kind == "vllm":
            page = await transport.find(endpoint.root_url("metrics")) or b""
            server = server.with_metrics(page)
        return server


def _headers(deadline: Deadline) -> dict[str, str]:
    """A request id for the server's log, and the remaining time."""
    headers = {"x-request-id": uuid.uuid4().hex}
    remaining_ms = deadline.remaining_ms
    return headers if remaining_ms is None else {**headers, "x-weft-timeout-ms": str(remaining_ms)}


@contextmanager
def _counted(answer: StreamedAnswer) -> Iterator[None]:
    """Add usage to the error of an invalid answer, which was paid for."""
    try:
        yield
    except ModelError as error:
        error.usage = answer.usage
        raise


_NO_MEDIA = re.compile(
    r"multi-?modal|image|audio|vision|content (?:part|type)|input_audio|file_data", re.IGNORECASE
)


def _media_failure(error: WeftError, model: str) -> WeftError:
    """The error for media that the server refuses, or `error` for any other reason."""
    if type(error) is not ModelRequestError or not _NO_MEDIA.search(error.message):
        return error
    hint = "ask a multimodal model, or leave the media out"
    return CapabilityError(f"{model} takes no such media: {error.message}", hint=hint)


def _thinking_failure(error: WeftError) -> WeftError:
    """A bound that vLLM was not started for is a missing capability."""
    if not isinstance(error, ModelRequestError) or "thinking_token_budget" not in error.message:
        return error
    return CapabilityError(
        error.message,
        hint="start vLLM with --reasoning-parser, or leave thinking_tokens out beside tools",
    )


def _grammar_failure(error: WeftError) -> WeftError:
    """A grammar in a dialect that the server's engine cannot read is a missing capability."""
    if not isinstance(error, ModelRequestError) or _OTHER_DIALECT not in error.message:
        return error
    return CapabilityError(
        error.message,
        hint="grammars are for llguidance: start vLLM with"
        " --structured-outputs-config.backend guidance, as `weft serve` does",
    )


async def _drain(payloads: AsyncGenerator[bytes, None]) -> None:
    """Read the end of the body, so that its connection can serve the next call."""
    try:
        async with asyncio.timeout(_DRAIN_S):
            async for _ in payloads:
                continue
    except Exception:  # noqa: BLE001 (the answer is complete, whatever happens to its connection)
        return
