"""A loop's talk with its model: ask, read the reply, say what was wrong with it, ask again.

Knows no tools: what a reply asks for is done elsewhere, and told here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from weft.agents.agent import AgentOptions, Observation
from weft.agents.loops.conversation import Conversation
from weft.agents.loops.form import Form
from weft.agents.loops.prompts.system import system
from weft.agents.loops.prompts.turns import NO_TEXT, STOP, correction, results
from weft.agents.loops.reply import Reply, read_reply
from weft.agents.loops.shown import BRIEF_CHARS, RESULT_CHARS, shown_all
from weft.agents.loops.turn import ask, gave_up, is_costly, ready
from weft.core.errors import ModelOutputError
from weft.core.ports import Capabilities, ModelClient, ModelRequest, Sampling
from weft.core.values import Completion, Message
from weft.engine import NodeContext
from weft.engine.digest_text import DigestTexts

CORRECTIONS: Final = 2
"""How often in a row a model is told that its reply cannot be used, before the agent gives up."""


class Dialogue:
    """One conversation, which begins with `rules` and the spelling of `form`.

    `names` are those of the nodes in which the model is asked, in turn; else `turn1`, `turn2`...
    """

    def __init__(
        self,
        model: ModelClient,
        options: AgentOptions,
        capabilities: Capabilities,
        rules: str,
        form: Form,
        names: Iterator[str] | None = None,
    ) -> None:
        self._model = model
        self._names = names or (f"turn{number}" for number in count(1))
        self._constrained = options.constrain != "never" and capabilities.structured_output
        self._sampling = Sampling(options.max_tokens, options.temperature)
        self._texts = DigestTexts()
        said = system(rules, form, constrained=self._constrained, instructions=options.instructions)
        self._conversation = Conversation(
            [said],
            context_tokens=capabilities.max_context_tokens,
            answer_tokens=options.max_tokens,
        )

    @classmethod
    async def begin(
        cls,
        context: NodeContext,
        model: ModelClient,
        options: AgentOptions,
        rules: str,
        form: Form,
        names: Iterator[str] | None = None,
    ) -> Dialogue:
        """A dialogue with `model`, once it is ready. Raises: `ModelError`, `ServeError`."""
        return cls(model, options, await ready(context, model), rules, form, names)

    @property
    def half_chars(self) -> int:
        """How long one message should be at most, in characters."""
        return self._conversation.half_chars

    def tell(self, text: str, brief: str | None = None) -> None:
        """Say `text` to the model with the next question; `brief` where room becomes short."""
        self._conversation.say(Message("user", text), brief)

    def report(self, observed: Sequence[Observation], *notes: str) -> None:
        """Tell what calls came to, in their order; each gets the same share of the room."""
        room = self.half_chars
        share = min(RESULT_CHARS, max(BRIEF_CHARS, room // len(observed)))
        full = shown_all(observed, room + room // 2, share)  # the calls themselves take room too
        brief = shown_all(observed, room, BRIEF_CHARS)
        self.tell(results(full, *notes), results(brief, *notes))

    async def ask(self, context: NodeContext, form: Form) -> Reply:
        """The model's next reply.

        Raises: `AgentError` when the model cannot be asked, or writes nothing that can be used.
        """
        for asked in range(1, 2 + CORRECTIONS):
            completion = await self._asked(context, form)
            try:
                # In a thread: a value that is hard to check takes its time.
                return await asyncio.to_thread(read_reply, completion, form)
            except ModelOutputError as error:
                problem = str(error)
            if asked > 1 and is_costly(completion):
                break
            context.log(f"the reply cannot be used: {problem}")
            self.tell(correction(problem, form, constrained=self._constrained))
        raise gave_up(context, completion, problem, asked)

    async def _asked(self, context: NodeContext, form: Form) -> Completion:
        self._conversation.fit(context.log)
        held = self._constrained
        stops = form.calls and not held  # an answer alone is never cut off, not even there
        request = ModelRequest(
            self._conversation.messages,
            sampling=replace(self._sampling, stop=STOP if stops else ()),
            schema=form.schema() if held else None,
        )
        completion = await ask(context, next(self._names), self._model, request, self._texts)
        self._conversation.measure(completion.usage)
        self._conversation.say(Message("assistant", completion.text or NO_TEXT))
        return completion
