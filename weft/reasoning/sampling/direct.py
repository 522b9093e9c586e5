"""One call with the unchanged question: the baseline of all other strategies."""

from __future__ import annotations

from typing import ClassVar

from weft.core.errors import ReasoningError
from weft.core.ports import ModelClient
from weft.reasoning.answers import reader, schema_key
from weft.reasoning.chat.strategy import ChatStrategy
from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.sampling.prompts import question_messages
from weft.reasoning.thought import Sample, Thought


class DirectStrategy(ChatStrategy):
    """Settings: `instruction`, added to the question; `answer`, the reader of its key.

    answer: auto, number, choice, text or a function.
    """

    name = role = "direct"
    defaults: ClassVar = {"instruction": "", "answer": None}

    def __init__(self, model: ModelClient, options: ThinkOptions) -> None:
        super().__init__(model, options)
        self._read = reader(self.settings["answer"] or "auto")

    async def think(self, thread: ChatThread, question: Question) -> Thought:
        plain = self.settings["answer"] is None and question.schema is not None
        messages = question_messages(question, self.settings["instruction"])
        reply = await thread.ask("answer", messages, schema=question.schema)
        if not reply.ok:
            raise ReasoningError(reply.reason, hint=reply.hint)
        whole = reply.status == "finished"
        why = "the model came to its end" if whole else "the answer was cut off"
        key = (schema_key if plain else self._read)(reply.text, whole)
        sample = Sample(0, reply.text, key, reply.tokens, "finished" if whole else "length")
        return thread.finish(reply.text, why, key=key, samples=(sample,), cut=reply.cut)
