"""For each strategy a question that it can answer, and a scripted model that answers it.

A strategy that is not listed gets the usual ones, so a new one is tried without anybody's doing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from weft.core.ports import Capabilities, ModelRequest
from weft.reasoning.question import Document
from weft.reasoning.strategies import STRATEGIES
from weft.testing import FakeModel, Reply
from weft.testing.token_model import TokenModel, TokenReply

USUAL = "Six times seven. The answer is 42."
NEED_TOKEN_IDS = frozenset(
    name
    for name, entry in STRATEGIES.items()
    if "token ids" in entry.needs or "local" in entry.needs
)
_TRIPLES = "Rome\tcapital of\tItaly\nItaly\tpart of\tEurope\n"


@dataclass(frozen=True, slots=True)
class Occasion:
    """What one strategy is asked, with which settings; `says` is what the model says."""

    question: str = "What is six times seven?"
    documents: tuple[Document, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    says: str = USUAL


_OCCASIONS = {
    "map-reduce": Occasion(documents=(Document("sums.txt", "6 * 7 is 42.\n" * 40),)),
    "mirage": Occasion("Where is Rome?", (Document("places.tsv", _TRIPLES),)),
}


def occasion(strategy: str) -> Occasion:
    """What `strategy` is tried with."""
    return _OCCASIONS.get(strategy, Occasion())


TYPED = '{"n": 42}'
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
"""What is asked for in the tests of typed answers, and what the models say to any schema."""


def _said(strategy: str, request: ModelRequest) -> str:
    return occasion(strategy).says if request.schema is None else TYPED


def chat(strategy: str, per_token_s: float = 0.0) -> FakeModel:
    """A model that knows messages and nothing of tokens."""
    return FakeModel(lambda request: Reply(_said(strategy, request), per_token_s=per_token_s))


class Neighbours(TokenModel):
    """A model over token ids whose calls may see one another, as far as anybody can tell."""

    async def capabilities(self) -> Capabilities:
        there = await super().capabilities()
        return replace(
            there, structured_output=True, layouts=("contiguous", "interleaved", "combined")
        )


def tokens(strategy: str, per_token_s: float = 0.0) -> TokenModel:
    """A model over token ids, which runs groups of concurrent attention too."""

    def script(_: Sequence[int], request: ModelRequest) -> TokenReply:
        return TokenReply(_said(strategy, request))

    return Neighbours(script, per_token_s=per_token_s)


class _Make(Protocol):
    def __call__(self, strategy: str, per_token_s: float = 0.0) -> FakeModel | TokenModel: ...


MODELS: dict[str, _Make] = {"chat": chat, "tokens": tokens}


def read(model: FakeModel | TokenModel) -> list[str]:
    """The prompts that the model has seen, as texts."""
    return [
        "\n".join(message.content for message in request.messages)
        if request.messages or isinstance(model, FakeModel)
        else model.spell(request.prompt_token_ids)
        for request in model.requests
    ]


def cases() -> list[tuple[str, str]]:
    """Every strategy with every model that has what it needs."""
    return [
        (name, kind)
        for name in STRATEGIES
        for kind in MODELS
        if kind == "tokens" or name not in NEED_TOKEN_IDS
    ]
