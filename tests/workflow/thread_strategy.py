"""A small strategy for tests of what is around strategies: `width` threads, the usual answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from weft.core.errors import ReasoningError
from weft.core.ports import ModelClient
from weft.core.values import Message
from weft.engine import Inputs, NodeContext, NodeFn
from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.options import ThinkOptions, read_settings
from weft.reasoning.question import Question
from weft.reasoning.strategies import STRATEGIES, StrategyEntry
from weft.reasoning.thought import Thought


class Chorus:
    """Everything in the question reaches the model in one prompt."""

    name = "chorus"

    def __init__(self, model: ModelClient, options: ThinkOptions) -> None:
        self._mood = read_settings(self.name, options.settings, {"mood": "calm"})["mood"]
        self._model = model
        self._options = options

    def work(self, question: Question) -> NodeFn:
        texts = [f"{document.name}={document.text}" for document in question.documents]
        system = Message("system", f"{question.system}|{self._mood}")
        messages = (system, Message("user", " ".join([question.text, *texts])))

        async def voice(thread: ChatThread) -> str:
            said = await thread.ask("say", messages, schema=question.schema)
            if said.status == "failed":
                raise ReasoningError(said.reason)
            thread.returns(said.text)
            return said.text

        async def work(context: NodeContext, _: Inputs) -> Thought:
            thread = await ChatThread.begin(context, self._model, self._options)
            jobs = [(f"voice{index}", voice) for index in range(self._options.width)]
            said = [text for text in await thread.fork("voices", jobs) if text is not None]
            if not said:
                raise ReasoningError("nobody said anything")
            answer, votes = Counter(said).most_common(1)[0]
            return thread.finish(answer, f"{votes} voices agree")

        return work


def make(model: ModelClient, options: ThinkOptions) -> Chorus:
    return Chorus(model, options)


@contextmanager
def registered() -> Iterator[None]:
    """While the context is open, there is a strategy `chorus`."""
    entry = StrategyEntry(
        "tests.workflow.thread_strategy:make", "several voices", "nobody", "any model", "a voice"
    )
    with patch.dict(STRATEGIES, {"chorus": entry}):  # type: ignore[arg-type]
        yield
