"""One call, the question as it is: what every other strategy is compared with."""

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
from weft.reasoning.strategy import OUT_OF_TOKENS_HINT
from weft.reasoning.thought import Sample, Thought


class DirectStrategy(ChatStrategy):
    """Settings: `instruction`, which is added to the question; `answer`, how its key is read.

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
        said = await thread.ask("answer", messages, schema=question.schema)
        if not said.ok:
            raise ReasoningError(said.reason, hint=OUT_OF_TOKENS_HINT if said.cut else None)
        whole = said.status == "finished"
        why = "the model came to its end" if whole else "the answer was cut off"
        key = (schema_key if plain else self._read)(said.text, whole)
        sample = Sample(0, said.text, key, said.tokens, "finished" if whole else "length")
        return thread.finish(said.text, why, key=key, samples=(sample,), cut=said.cut)
