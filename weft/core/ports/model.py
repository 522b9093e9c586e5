"""The model port: one request in, a stream of token events out.

The stream is an async generator. Closing it (`aclose`, or cancelling the task that iterates)
cancels the request where it runs, so that a server frees its KV cache and a local batch its row.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from weft.core.errors import ModelOutputError, ModelRequestError
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
    """How tokens are drawn. `temperature` 0 is greedy. None leaves it to the model's default.

    `min_p`: only tokens with at least that part of the likeliest one's probability, after
    temperature and before `top_k` and `top_p`; 0 keeps all.
    A stop text is cut off from the answer's text; a stop token is not part of it either, but the
    last of its token ids.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    stop_token_ids: tuple[int, ...] = ()
    min_p: float | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """A stretch of `tokens` prompt tokens that begins at `position`.

    Its tokens see those before them in the same stretch, and the earlier stretches `sees`, by
    index. Stretches of one prompt follow one another in its tokens; their positions may overlap.
    What is generated after the prompt sees all of it, and goes on after its highest position.
    """

    tokens: int
    position: int
    sees: tuple[int, ...] = ()


AttentionLayout = Literal["contiguous", "interleaved", "combined", "slots"]


@dataclass(frozen=True, slots=True)
class ConcurrentAttention:
    """Requests of one `group` are workers that see one another's tokens as they are written.

    The answer begins when all `workers` have come, `index` from 0 among them. Layouts, in the words
    of Hogwild! Inference (arXiv 2504.06261): contiguous, one growing block for each worker;
    interleaved, only finished steps are shared; combined, both. slots: one block for each worker,
    at positions of its own that no other's growth moves, as in Group Think (arXiv 2505.11107).

    A worker reads its prompt, the finished steps of all, `others`, the blocks of the others, `own`,
    and its own block last. `opening` begins its answer, and every further step where steps are
    shared; `{step}` in it is the step's number, from 1. `nudge` follows the opening of a step
    once `nudge_tokens` have been written since the last one. These texts are the program's, not a
    user's or a model's; no special token comes of them. Openings and nudges are part of the
    answer: they count as written.

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
    """The program that a call is part of, and where the call stands in it.

    `path` is the longest way from this call to the end of the program, the call included;
    `remaining` is that of the whole program, so never less. `work` is all that models still have to
    do for it, as far as it is known; None: nobody knows. All in one unit, the weights of nodes.
    `node` names the place that asks, the same in every run and for every item of a map: what was
    written there before is what will be written now.
    """

    id: str
    path: float = 1.0
    remaining: float = 1.0
    work: float | None = None
    node: str = ""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call.

    Exactly one of `messages` (chat, templated where the model runs) and `prompt_token_ids` (used as
    they are) is given. `schema` constrains the output to JSON that fits the JSON Schema,
    `grammar` to the language of a Lark grammar in llguidance's dialect; at most one of the two. A
    larger `priority` is more urgent; a client that serves several programs orders by `program`
    first. `cache_prefix` names requests that share a prompt prefix. An answer that is not complete
    after `timeout_s` seconds is worth nothing. `adapter` names the LoRA adapter that answers, one
    of those that the client's capabilities list. `top_logprobs`: so many of the largest log
    probabilities are reported for each token. `placement` covers `prompt_token_ids` (empty: one
    stretch from position 0). `attention`: the request is a worker of a group.
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
    def continues(self) -> bool:
        """Whether the messages end with an unfinished answer, which the model is to go on with."""
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
    """Newly decoded text of the model's reasoning, which is not part of its answer."""

    text: str
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Prefilled:
    """The prompt has been computed. Comes first, from clients that can tell, with the prompt's ids.

    From here on other requests with the same prefix find it in the server's cache.
    """

    prompt_token_ids: tuple[int, ...] = ()


Delta = TextDelta | ReasoningDelta | ToolCallDelta
ModelEvent = Prefilled | Delta | Completion


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a client has found its model able to do.

    `grammar`: output can be held to a request's grammar. `continuation`: a conversation may end
    with an unfinished answer, which the model then goes on with.
    `adapters` are LoRA adapters that a request may name instead of the model. `metrics`: the server
    counts its running requests and cached tokens where the client can read them. `stop_token_ids`,
    `placement`: requests may have them. `top_logprobs`: at most so many. `layouts` of concurrent
    attention that a group may have. `extra_fields`: further fields that `ModelRequest.extra` may
    have, all of which it honours. `sampling`: what stands in where a request leaves temperature,
    top_p or top_k open; None: the server's own default, which it does not tell.
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


class ModelClient(Protocol):
    """A model that answers many requests at once."""

    @property
    def model(self) -> str:
        """The model's name, as reports show it."""

    async def capabilities(self) -> Capabilities:
        """What the model can do; asked of the server or the weights, not assumed."""

    def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream the answer: perhaps `Prefilled`, deltas, then exactly one `Completion`.

        The text deltas concatenate to the completion's text, the reasoning deltas to its reasoning.
        Closing the generator early cancels the request.

        Raises: `ModelRequestError`, `ModelUnavailable` (also when a stream breaks off half-way),
        `ModelOverloaded`, `ModelTimeout`, `ModelOutputError`, `CapabilityError`, `ModelNotFound`.
        """

    async def aclose(self) -> None:
        """Cancel what is running and let go of connections and weights. Harmless when repeated."""


@runtime_checkable
class Startable(Protocol):
    """A model client that may have to start something before it can answer."""

    async def start(self, show: Callable[[str], None] | None = None) -> None:
        """Get ready; `show` is told in words how that goes. Harmless when repeated.

        Raises: `ServeError`.
        """


@runtime_checkable
class Warmable(Protocol):
    """A model client that can have the beginning of a prompt computed before the rest is known."""

    async def warm(self, request: ModelRequest) -> None:
        """Compute the prompt of `request` and keep no answer; less urgent than any real call.

        Does nothing where that would not help. Raises: `ModelError`.
        """


@runtime_checkable
class Tokenizing(Protocol):
    """A model client that turns text into its model's token ids, and ids into text.

    What a user, a tool or a model wrote is encoded with `special` False: then no special token can
    come of it, whatever it spells.
    """

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        """The ids of `text`; none are added. `special`: those spelt out in it are read as such.

        Raises: `ModelError`.
        """

    async def encode_chat(self, messages: tuple[Message, ...]) -> tuple[int, ...]:
        """The prompt of a conversation, with the opening of the answer. Raises: `ModelError`."""

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        """The text of `token_ids`, special tokens spelt out. Raises: `ModelError`."""

    async def special_token(self, text: str) -> int | None:
        """The id of the special token that is written `text`; None: there is none.

        Raises: `ModelError`.
        """


def unrefused(answer: Completion) -> Completion:
    """`answer`, for who cannot use half of one.

    Raises: `ModelRequestError` for one that was refused on its way, with the reason.
    """
    if answer.finish_reason == "refused":
        why = f": {answer.refusal}" if answer.refusal else ""
        raise ModelRequestError(f"the answer of {answer.model or 'the model'} was refused{why}")
    return answer


def cut_off(what: str, tokens: int | None) -> ModelOutputError:
    """The error of `what`, a value that ends in the middle because its `tokens` were used up."""
    where = "" if tokens is None else f" at {tokens} tokens"
    return ModelOutputError(f"{what} was cut off{where}", hint="raise max_tokens, or ask for less")
