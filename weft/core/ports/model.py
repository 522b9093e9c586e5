"""The model port: one request in, a stream of token events out.

The stream is an async generator. Closing it (`aclose`, or cancelling the task that iterates)
cancels the request at its origin: a server frees its KV cache, a local batch its row.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, runtime_checkable

from weft.core.errors import CapabilityError, ModelRequestError, OutputTruncated
from weft.core.generated_text import is_blank, without_thought
from weft.core.values import (
    AUTOREGRESSIVE,
    Completion,
    DecodeSpec,
    JsonSchema,
    Message,
    ToolSpec,
)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters. `temperature` 0 is greedy; None means the model's default.

    `min_p` keeps the tokens with at least that share of the likeliest one's probability, after
    temperature and before `top_k` and `top_p`; 0 keeps all. A stop text is cut off from the
    answer's text. A stop token is not in the text either, but is the last of its token ids.
    Penalties and `logit_bias` (token ids, written as texts, to what is added to their logits) are
    those of the OpenAI protocol, `repetition_penalty` that of vLLM. `reasoning_effort` is a name
    that the server knows, such as "low".

    `thinking_tokens` bounds the model's thought before its answer; 0: no thought; None: the model's
    own length. Where it is set, `max_tokens` bounds the answer alone, so that both together are the
    most that is written. Clients without the capability `thinking` refuse it.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    stop_token_ids: tuple[int, ...] = ()
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: Mapping[str, float] | None = None
    reasoning_effort: str | None = None
    thinking_tokens: int | None = None

    @property
    def shifts(self) -> tuple[str, ...]:
        """The names of set penalties and biases, which change logits by what was written."""
        names = ("presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias")
        return tuple(name for name in names if getattr(self, name) is not None)

    @property
    def most_tokens(self) -> int | None:
        """The most tokens that may be written, the thought included; None: no limit is set."""
        if self.max_tokens is None:
            return None
        return self.max_tokens + (self.thinking_tokens or 0)

    def within(self, tokens: int) -> Sampling:
        """These parameters for at most `tokens` tokens in all, at least 1.

        Where they are too few for both, thought and answer are shortened in proportion; without
        `max_tokens`, the thought has at most half of them.
        """
        tokens, thought = max(1, tokens), self.thinking_tokens
        if thought is None:
            return replace(self, max_tokens=min(tokens, self.max_tokens or tokens))
        most = self.most_tokens
        if most is None:
            thought = min(thought, tokens // 2)
        elif most > tokens:
            thought = min(thought * tokens // most, tokens - 1)
        answer = tokens - thought if most is None else min(tokens - thought, self.max_tokens or 1)
        return replace(self, max_tokens=answer, thinking_tokens=thought)


_FURTHER: Final = (
    *("top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"),
    *("logit_bias", "reasoning_effort", "thinking_tokens"),
)


def further_sampling(options: object) -> Sampling:
    """The sampling settings in attributes of `options`, besides length, temperature and seed."""
    return Sampling(**{name: getattr(options, name) for name in _FURTHER})


@dataclass(frozen=True, slots=True)
class Placed:
    """A segment of `tokens` prompt tokens that begins at `position`.

    Its tokens see those before them in the same segment, and the earlier segments `sees`, by index.
    Segments of one prompt are consecutive in its tokens; their positions may overlap. Generated
    tokens see the whole prompt and continue after its highest position.
    """

    tokens: int
    position: int
    sees: tuple[int, ...] = ()


AttentionLayout = Literal["contiguous", "interleaved", "combined", "slots"]


@dataclass(frozen=True, slots=True)
class ConcurrentAttention:
    """Requests of one `group` are workers that see one another's tokens while they write.

    The answer begins when all `workers` are there, `index` from 0 among them. Layouts, in the terms
    of Hogwild! Inference (arXiv 2504.06261): contiguous, one growing block for each worker;
    interleaved, only finished steps are shared; combined, both. slots: one block for each worker,
    at positions that no other worker's growth moves, as in Group Think (arXiv 2505.11107).

    A worker reads its prompt, the finished steps of all, `others`, the blocks of the others, `own`,
    and its own block last. `opening` begins its answer, and every further step where steps are
    shared; `{step}` in it is the step's number, from 1. `nudge` follows the opening of a step
    once `nudge_tokens` have been written since the last nudge. These texts come from the program,
    not from a user or a model, and are encoded without special tokens. Openings and nudges are part
    of the answer and count as written.

    Raises: `ValueError` for an index outside the group.
    """

    group: str
    workers: int
    index: int
    layout: AttentionLayout = "combined"
    others: str = ""
    own: str = ""
    opening: str = ""
    nudge: str = ""
    nudge_tokens: int = 256

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.workers:
            raise ValueError(f"worker {self.index} is none of a group of {self.workers}")
        if self.nudge_tokens < 1:
            raise ValueError(f"nudge_tokens must be at least 1, not {self.nudge_tokens}")


@dataclass(frozen=True, slots=True)
class Program:
    """The program that a call is part of, and the call's position in it.

    `path` is the longest path from this call to the end of the program, the call included;
    `remaining` is that of the whole program, so never less. `work` is all remaining work of models
    for it, as far as known; None: unknown. All are in units of node weights.
    `node` names the calling node, the same in every run and for every item of a map, so that
    earlier answers of the node predict the next one. `caller` is its id in this run, a path as in
    `weft.core.ids`: calls of one `session_of(caller)` continue one another. `returns`: whether more
    calls of that session are known to follow this one, or none; None: unknown.
    """

    id: str
    path: float = 1.0
    remaining: float = 1.0
    work: float | None = None
    node: str = ""
    caller: str = ""
    returns: bool | None = None

    def last_call(self) -> Program:
        """The program for a node that calls once: nothing follows, unless it is known.

        A loop may come back, which a node inside it cannot know.
        """
        if self.returns is not None or "#" in self.caller:
            return self
        return replace(self, returns=False)


TEMPLATE_KWARGS: Final = "chat_template_kwargs"
"""The field of `ModelRequest.extra` with variables for the chat template, as vLLM names it."""


def template_kwargs(extra: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The variables for the chat template among the fields `extra`; empty without any.

    Raises: `ModelRequestError` when they are no mapping of names.
    """
    given = (extra or {}).get(TEMPLATE_KWARGS)
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ModelRequestError(
            f"{TEMPLATE_KWARGS} is a mapping of names to values, not {given!r:.80}",
            hint="such as {enable_thinking: false}",
        )
    return given


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call.

    Exactly one of `messages` (chat, templated by the model's server) and `prompt_token_ids` (used
    as they are) is set. `schema` constrains the output to JSON that fits the JSON Schema,
    `grammar` to the language of a Lark grammar in llguidance's dialect; at most one of the two. A
    larger `priority` is more urgent; a client that serves several programs orders by `program`
    first. `cache_prefix` names requests that share a prompt prefix. An answer that is not complete
    after `timeout_s` seconds fails. `adapter` names the LoRA adapter that answers, one of the
    client's capabilities. `top_logprobs`: how many of the largest log probabilities to report for
    each token. `placement` covers `prompt_token_ids` (empty: one segment from position 0).
    `attention`: the request is a worker of a group.
    """

    messages: tuple[Message, ...] = ()
    prompt_token_ids: tuple[int, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    schema: JsonSchema | None = None
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["auto", "none", "required"] = "auto"
    logprobs: bool = False
    decode: DecodeSpec = AUTOREGRESSIVE
    priority: int = 0
    cache_prefix: str | None = None
    program: Program | None = None
    timeout_s: float | None = None
    adapter: str | None = None
    grammar: str | None = None
    top_logprobs: int = 0
    placement: tuple[Placed, ...] = ()
    attention: ConcurrentAttention | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.messages) == bool(self.prompt_token_ids):
            raise ValueError("a request has either messages or prompt_token_ids")
        placed = sum(stretch.tokens for stretch in self.placement)
        if self.placement and placed != len(self.prompt_token_ids):
            raise ValueError(f"{placed} of {len(self.prompt_token_ids)} prompt tokens are placed")
        if self.schema is not None and self.grammar is not None:
            raise ValueError("a request has a schema or a grammar, not both")

    @property
    def template_kwargs(self) -> Mapping[str, Any]:
        """Variables for the chat template. Raises: `ModelRequestError` when they are no mapping."""
        return template_kwargs(self.extra)

    @property
    def continues(self) -> bool:
        """Whether the messages end with an unfinished answer, which the model is to continue."""
        last = self.messages[-1] if self.messages else None
        return last is not None and last.role == "assistant" and not last.tool_calls


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Newly decoded text. `token_ids` and `logprobs` may be empty where the server hides them.

    `top_logprobs`: for each token the largest log probabilities, the highest first.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    top_logprobs: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of the arguments of tool call `index`; `id` and `name` come with its first piece."""

    index: int
    arguments: str
    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Newly decoded text of the model's reasoning, not part of its answer."""

    text: str
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Prefilled:
    """The prompt has been computed. The first event of clients that report it, with its token ids.

    From now on other requests with the same prefix find it in the server's cache.
    """

    prompt_token_ids: tuple[int, ...] = ()


Delta = TextDelta | ReasoningDelta | ToolCallDelta
ModelEvent = Prefilled | Delta | Completion


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities of a client and its model.

    `grammar`: output can be constrained by a grammar. `continuation`: a conversation may end with
    an unfinished answer, which the model then continues. `adapters`: LoRA adapters that a request
    may name. `metrics`: the server's counts of running requests and cached tokens are readable.
    `stop_token_ids`, `placement`: requests may have them. `top_logprobs`: the most per token.
    `layouts`: supported layouts of concurrent attention. `extra_fields`: fields that
    `ModelRequest.extra` may have, all of which are honoured. `sampling`: the defaults of
    temperature, top_p and top_k; None: the server's own, which it does not report. `media`: kinds
    of media that messages may have: image, audio, file. A server may still refuse them.
    `thinking`: requests may set `thinking_tokens`. `plan_form`: the form of plan prompts that the
    weights were trained on, such as `compact-1`; empty: none, so prompts explain the rules.
    """

    streaming: bool = True
    structured_output: bool = False
    tools: bool = False
    logprobs: bool = False
    token_ids: bool = False
    prompt_token_ids: bool = False
    priority: bool = False
    prefix_reuse: bool = False
    prompt_logprobs: bool = False
    metrics: bool = False
    grammar: bool = False
    continuation: bool = False
    stop_token_ids: bool = False
    placement: bool = False
    top_logprobs: int = 0
    layouts: tuple[AttentionLayout, ...] = ()
    adapters: tuple[str, ...] = ()
    max_context_tokens: int | None = None
    extra_fields: tuple[str, ...] = ()
    sampling: Sampling | None = None
    media: tuple[str, ...] = ()
    thinking: bool = False
    plan_form: str = ""


class ModelClient(Protocol):
    """A model that answers many requests at once."""

    @property
    def model(self) -> str:
        """The model's name, as reports show it."""

    async def capabilities(self) -> Capabilities:
        """The model's capabilities, as the server or the weights report them, not assumed."""

    def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream the answer: perhaps `Prefilled`, deltas, then exactly one `Completion`.

        The text deltas concatenate to the completion's text, the reasoning deltas to its reasoning.
        Closing the generator early cancels the request.

        Raises: `ModelRequestError`, `ModelUnavailable` (also when a stream breaks off half-way),
        `ModelOverloaded`, `ModelTimeout`, `ModelOutputError`, `CapabilityError`, `ModelNotFound`.
        """

    async def aclose(self) -> None:
        """Cancel what is running and release connections and weights. Harmless when repeated."""


def slots_of(model: ModelClient) -> str:
    """The name whose slots calls of `model` take: of a declared model that of its declaration."""
    name: str = getattr(model, "slots", model.model)
    return name


@runtime_checkable
class Startable(Protocol):
    """A model client that may have to start something before it can answer."""

    async def start(self, show: Callable[[str], None] | None = None) -> None:
        """Get ready; `show` receives progress messages. Harmless when repeated.

        Raises: `ServeError`.
        """


@runtime_checkable
class Warmable(Protocol):
    """A model client that can prefill the beginning of a prompt before the rest is known."""

    async def warm(self, request: ModelRequest) -> None:
        """Compute the prompt of `request` without an answer, at lower priority than any real call.

        Does nothing where that would not help. Raises: `ModelError`.
        """


@runtime_checkable
class Tokenizing(Protocol):
    """A model client that turns text into its model's token ids, and ids into text.

    Text of a user, a tool or a model is encoded with `special` False: then it cannot become a
    special token, whatever it spells.
    """

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        """The ids of `text`; none are added. `special`: special tokens spelt in it become tokens.

        Raises: `ModelError`.
        """

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        """The prompt of a conversation, with the opening of the answer.

        `chat_template_kwargs`: variables of the template, such as `enable_thinking`; they win over
        those in the client's own settings. Raises: `ModelError`.
        """

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        """The text of `token_ids`, with special tokens spelt out. Raises: `ModelError`."""

    async def special_token(self, text: str) -> int | None:
        """The id of the special token written `text`, or None. Raises: `ModelError`."""


def check_media(request: ModelRequest, who: str, accepts: Collection[str] = ()) -> None:
    """Raises: `CapabilityError` for media in the messages that `who` does not take."""
    for message in request.messages:
        for part in message.media if message.parts else ():
            if part.kind not in accepts:
                takes = (
                    f"only {' and '.join(sorted(accepts))} beside text" if accepts else "only text"
                )
                raise CapabilityError(
                    f"{who} takes {takes}, and a message has {part}",
                    hint="ask a multimodal model behind vLLM or an OpenAI-compatible API",
                )


def unrefused(answer: Completion) -> Completion:
    """`answer`, unless the model refused to finish it.

    Raises: `ModelRequestError` for an answer that was refused half-way, with the reason.
    """
    if answer.finish_reason == "refused":
        why = f": {answer.refusal}" if answer.refusal else ""
        raise ModelRequestError(f"the answer of {answer.model or 'the model'} was refused{why}")
    return answer


def cut_off(
    what: str, tokens: int | None, hint: str = "raise max_tokens, or ask for less"
) -> OutputTruncated:
    """The error for `what`, a value that ends in the middle because its `tokens` were used up."""
    where = "" if tokens is None else f" at {tokens} tokens"
    return OutputTruncated(f"{what} was cut off{where}", hint=hint)


BOUND_THOUGHT_HINT: Final = (
    "bound the thought (thinking_tokens: 500), or switch it off (thinking_tokens: 0; on the command"
    " line --thinking off)"
)
"""What to do where a model thought, and ended without an answer."""
THOUGHT_HINT: Final = f"raise max_tokens, {BOUND_THOUGHT_HINT}"
"""What to do where all tokens were spent on the thought before the answer."""


def only_thought(answer: Completion) -> bool:
    """Whether the model thought, and wrote no answer."""
    text = answer.text
    thought = not is_blank(answer.reasoning) or not is_blank(text)
    return thought and not answer.tool_calls and is_blank(without_thought(text))
