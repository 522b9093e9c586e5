"""A model that is a symbolic search: for a prompt it writes exactly what the search writes next.

It speaks the model port, so that whatever runs models can be tested without weights: a runtime
that puts one prompt together otherwise than the search does is found out at once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from transformers import PreTrainedTokenizerFast

from evals.reasoning.countdown.problem import Problem
from evals.reasoning.countdown.search import Beams, apr, sos_plus, sub_search
from evals.reasoning.countdown.sequences import Kind
from evals.reasoning.countdown.trace import Node, message, opening_node
from evals.reasoning.countdown.vocabulary import compact_tokenizer
from weft.core.errors import ModelRequestError
from weft.core.ports import Capabilities, ModelEvent, ModelRequest, Prefilled, TextDelta
from weft.core.values import Completion, Message, Usage

CHUNK_TOKENS: Final = 64


@dataclass(frozen=True, slots=True)
class SymbolicModel:
    """The search `kind` with these beams behind the model port, over the compact tokenizer.

    The coins of a search depend on `seed` and on the node that it starts at, and on nothing else.
    """

    kind: Kind
    beams: Beams
    seed: int = 0
    tokenizer: PreTrainedTokenizerFast = field(default_factory=compact_tokenizer, repr=False)

    def draws(self, node: Node) -> random.Random:
        """What draws the coins of the search at `node`."""
        return random.Random(f"{self.seed}:{node.opening}")

    def writes(self, prompt: str) -> str:
        """What the search writes after `prompt`. Raises: ValueError where it never comes."""
        node = opening_node(prompt)
        _, _, written = prompt.partition(node.opening)
        if node.steps:
            return _rest(sub_search(node, self.beams, self.draws(node)), written)
        problem = Problem(node.numbers, node.target)
        if self.kind == "sos":
            return _rest(sos_plus(problem, self.beams, self.draws(node)), written)
        return self._main(problem, written)

    def _main(self, problem: Problem, written: str) -> str:
        """What APR's main search writes next: up to the end of a spawn block, or to its own."""
        search = apr(problem, self.beams, self.draws(Node.root(problem)))
        try:
            spawn = next(search)
            while not spawn.written.startswith(written):
                texts = (sub_search(n, self.beams, self.draws(n)) for n in spawn.nodes)
                spawn = search.send([message(text) for text in texts])
            return spawn.written[len(written) :]
        except StopIteration as end:
            return _rest(end.value, written)

    # -- the model port ----------------------------------------------------------------------

    @property
    def model(self) -> str:
        return f"{self.kind}-{self.beams.main}-{self.beams.sub}"

    async def capabilities(self) -> Capabilities:
        return Capabilities(token_ids=True, prompt_token_ids=True, stop_token_ids=True)

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:  # noqa: ARG002
        return tuple(self.tokenizer(text, add_special_tokens=False).input_ids)

    async def encode_chat(
        self,
        messages: tuple[Message, ...],  # noqa: ARG002
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[int, ...]:
        raise ModelRequestError("a Countdown model has no chat template", hint="send token ids")

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        return str(self.tokenizer.decode(token_ids))

    async def special_token(self, text: str) -> int | None:
        known = self.tokenizer.all_special_tokens
        return int(self.tokenizer.convert_tokens_to_ids(text)) if text in known else None

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Raises: `ModelRequestError` for a prompt that the search does not come to."""
        prompt = request.prompt_token_ids
        try:
            text = self.writes(str(self.tokenizer.decode(prompt, skip_special_tokens=True)))
        except ValueError as error:
            raise ModelRequestError(str(error)) from error
        ids = [*(await self.encode(text)), int(self.tokenizer.eos_token_id)]
        kept = ids[: request.sampling.max_tokens]
        yield Prefilled(prompt)
        for start in range(0, len(kept), CHUNK_TOKENS):
            await asyncio.sleep(0)
            chunk = kept[start : start + CHUNK_TOKENS]
            yield TextDelta(self._shown(chunk), tuple(chunk))
        yield Completion(
            self._shown(kept),
            "stop" if len(kept) == len(ids) else "length",
            token_ids=tuple(kept),
            usage=Usage(len(prompt), len(kept), requests=1),
            model=self.model,
        )

    def _shown(self, ids: list[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    async def aclose(self) -> None:
        """Nothing is open."""


def _rest(whole: str, written: str) -> str:
    if not whole.startswith(written):
        raise ValueError(f"the search does not come to {written[-80:]!r}")
    return whole[len(written) :]
