"""The answers of many systems to prompts, in an order that is fair to all. Computes no figure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Final

from evals.speculative.cases.prompt import Prompt
from evals.speculative.figures import PLAIN
from evals.speculative.served import Served
from evals.speculative.single import Model, plainly
from evals.speculative.systems import Methods, System
from evals.speculative.taken import Taken
from weft.core.values import AUTOREGRESSIVE

Answers = dict[str, list[Taken]]
"""By system, in the order of the prompts."""
_Answer = Callable[[str], Awaitable[Taken]]

_WHOLE_JSON: Final = 512
"""Tokens for an answer that a schema holds: one that is cut off is no answer."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many prompts of each case, and how long the answers to them.

    `back`: all systems are asked a second time, in the other order.
    """

    prompts: int
    tokens: int
    back: bool


class Rounds:
    """Asks the systems whose methods there are, and plain decoding first and last."""

    def __init__(self, model: Model, served: Served, methods: Methods) -> None:
        self._model = model
        self._served = served
        self._methods = methods

    async def answers(
        self, prompts: Sequence[Prompt], wanted: Sequence[System], size: Size
    ) -> Answers:
        """What all of them take for the same prompts; times are means of the turns."""
        there = {each.name: each for each in wanted if each.name in self._methods.made}
        found: Answers = {name: [] for name in (PLAIN, *there)}
        forth = [PLAIN, *there]
        turns = [*forth, *reversed(forth)] if size.back else [*forth, PLAIN]
        for prompt in prompts:
            ask = await self._asking(prompt, there, size.tokens)
            taken: Answers = {name: [] for name in found}
            for name in turns:
                taken[name].append(await ask(name))
            for name, several in taken.items():
                seconds = mean(one.seconds for one in several)
                found[name].append(replace(several[0], seconds=seconds))
        return found

    async def _asking(self, prompt: Prompt, there: dict[str, System], most_tokens: int) -> _Answer:
        """Read a prompt, so that no answer's time has it in it."""
        if not prompt.free:
            most = most_tokens if prompt.schema is None else _WHOLE_JSON
            await self._served.answer(replace(prompt, schema=None, grammar=None), AUTOREGRESSIVE, 1)

            async def held(name: str) -> Taken:
                spec = there[name].spec if name in there else AUTOREGRESSIVE
                return await self._served.answer(prompt, spec, most)

            return held
        read = self._model.read(prompt, self._methods.made.values())

        async def free(name: str) -> Taken:
            method = self._methods.made[name] if name in there else plainly()
            return read.answer(method, most_tokens)

        return free
