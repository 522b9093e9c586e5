"""Frozen values that programs, models and tools exchange. Equality is by content."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, Self, TypeVar, cast

from weft.core.content import ContentPart, Media
from weft.core.usage import Usage as Usage

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "tool_calls", "refused", "cancelled", "error"]
JsonSchema = Mapping[str, Any]
Effect = Literal["pure", "idempotent", "once", "unknown"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model requests. `arguments` is JSON text as it wrote it, not yet checked."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation. `tool_call_id` is set on a tool's answer.

    `parts`: texts and media in order, where there are media; `content` then joins the texts.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    parts: tuple[ContentPart, ...] = ()

    @classmethod
    def of(
        cls,
        role: Role,
        parts: Iterable[ContentPart],
        tool_calls: tuple[ToolCall, ...] = (),
        tool_call_id: str | None = None,
    ) -> Self:
        """The message with these parts; texts alone are joined by blank lines."""
        given = tuple(parts)
        text = "\n\n".join(part for part in given if isinstance(part, str))
        media = any(not isinstance(part, str) for part in given)
        return cls(role, text, tool_calls, tool_call_id, given if media else ())

    @property
    def media(self) -> tuple[Media, ...]:
        """The parts that are no texts."""
        return tuple(part for part in self.parts if isinstance(part, Media))


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as models and checkers see it: JSON Schemas of its parameters and its result.

    `result` is None where the tool declares no result type. `pure` promises that the same
    arguments give the same result and that nothing else happens. `batch` is the most calls in one
    batch (see `weft.core.ports.BatchRunner`), 0 where the tool takes one at a time.
    `version` changes when the tool's results may; empty: unknown, so results are not reused in
    later runs. `effect` is what a call does to the world; a pure tool's is `pure` by default.

    pure         nothing: results may change from call to call, but not because of the calls
    idempotent   a call repeated with the same idempotency key does no more than one call
    once         it must not be repeated, even if it is unknown whether it was carried out
    unknown      the tool does not declare it

    `approve`: calls may need a person's approval; a rule of the tool may exempt some. `needs` are
    the facts that have to hold before a call, such as `at({room})`, and `makes` those that hold
    after it, such as `open({door})` or `not at(*)`: see `weft.planner.rehearsal`, which may add
    calls of a tool with `fill` to a plan.

    Raises: `ValueError` for a pure tool with an effect.
    """

    name: str
    description: str
    parameters: JsonSchema
    result: JsonSchema | None = None
    pure: bool = False
    batch: int = 0
    version: str = ""
    effect: Effect = "unknown"
    approve: bool = False
    needs: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    fill: bool = False

    def __post_init__(self) -> None:
        if self.pure and self.effect == "unknown":
            object.__setattr__(self, "effect", "pure")
        if self.pure and self.effect != "pure":
            raise ValueError(f"the tool {self.name} is pure, so its effect is not {self.effect}")

    @property
    def repeatable(self) -> bool:
        """Whether a repeated call does no more than one call."""
        return self.effect in ("pure", "idempotent")


@dataclass(frozen=True, slots=True)
class Speculated:
    """How an answer was drafted. The `forwards` that wrote it exclude those of its prompt.

    `drafted` tokens were verified, `accepted` of them kept. `tested[d]` steps reached depth d + 1
    of a draft, and in `held[d]` of them that token was accepted; both are empty without counts.
    `proposal_s`: seconds spent drafting. `fallback`: why drafting was given up, if it was.
    """

    method: str
    drafted: int = 0
    accepted: int = 0
    forwards: int = 0
    tested: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    proposal_s: float = 0.0
    lossless: bool = True
    fallback: str = ""


@dataclass(frozen=True, slots=True)
class Denoised:
    """How a diffusion model filled in an answer, any number of tokens a pass, and by what `method`.

    `forwards` are all its passes; `by_kind` counts them by purpose: proposing tokens, storing
    finished ones, checking. `kept` tokens are the answer without its terminator; `discarded` ones
    came after its end. `query_tokens`: tokens evaluated in all passes together. `edits` and
    `remasks` count tokens that were overwritten or masked again.
    """

    method: str
    forwards: int = 0
    kept: int = 0
    discarded: int = 0
    query_tokens: int = 0
    blocks: int = 0
    edits: int = 0
    remasks: int = 0
    by_kind: tuple[tuple[str, int], ...] = ()
    lossless: bool = True

    @property
    def tokens_per_forward(self) -> float:
        """Kept tokens for each pass; 0 where there was none."""
        return self.kept / self.forwards if self.forwards else 0.0


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished model answer.

    `token_ids` and `logprobs` (natural log, one per generated token) are empty where the server
    does not return them. `text` excludes tool calls and `reasoning`, the text before the answer,
    where the server or the client tells the two apart. `stop` is the stop text or token of the
    request that ended the answer; None: another reason, such as the model's own end token, which
    is then the last of `token_ids`, except for diffusion models. `top_logprobs` as in `TextDelta`.
    `speculation`: None where each pass wrote one token, or the client does not report it;
    `denoised` is its counterpart for diffusion models. A `refused` answer has the text that was
    released before, perhaps none, and the reason in `refusal` where there is one.
    """

    text: str
    finish_reason: FinishReason = "stop"
    tool_calls: tuple[ToolCall, ...] = ()
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    reasoning: str = ""
    stop: str | int | None = None
    top_logprobs: tuple[tuple[float, ...], ...] = ()
    speculation: Speculated | None = None
    denoised: Denoised | None = None
    refusal: str = ""

    @property
    def decoding(self) -> Speculated | Denoised | None:
        """How several tokens were written in one pass, by either kind of model."""
        return self.speculation or self.denoised


@dataclass(frozen=True, slots=True)
class Lossless:
    """A decoder whose output distribution equals plain decoding of the target model."""

    method: str = "autoregressive"
    options: tuple[tuple[str, str | int | float | bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Lossy:
    """A decoder that may change the output; used only if asked for by name."""

    method: str
    options: tuple[tuple[str, str | int | float | bool], ...] = ()


DecodeSpec = Lossless | Lossy
AUTOREGRESSIVE = Lossless()


P = ParamSpec("P")
T = TypeVar("T")


def constructor(cls: Callable[P, T]) -> Callable[P, T]:
    """A faster constructor of `cls`, a frozen dataclass with slots; its values are frozen too.

    Values are filled as instances of a mutable class with the same slots, and become instances of
    `cls` before they are returned.
    """
    assert dataclasses.is_dataclass(cls)
    assert not hasattr(cls, "__post_init__"), "it would not be called"

    def freeze(made: Any) -> None:
        made.__class__ = cls

    fields = [(each.name, each.type, _default(each)) for each in dataclasses.fields(cls)]
    own = {"__post_init__": freeze, "__module__": cls.__module__}
    made = dataclasses.make_dataclass(cls.__name__, fields, namespace=own, eq=False, slots=True)
    return cast(Callable[P, T], made)


def _default(declared: dataclasses.Field[Any]) -> Any:
    values = declared.default, declared.default_factory
    return dataclasses.field(default=values[0], default_factory=values[1])  # one is missing
