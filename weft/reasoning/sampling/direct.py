"""One call, the question as it is: what every other strategy is compared with. Knows no server."""

from __future__ import annotations

from weft.core.errors import ReasoningError
from weft.core.ports import ModelClient
from weft.engine import Inputs, NodeContext, NodeFn
from weft.reasoning.answers import reader, schema_key
from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.options import ThinkOptions, read_settings
from weft.reasoning.question import Question
from weft.reasoning.sampling.prompts import question_messages
from weft.reasoning.strategy import OUT_OF_TOKENS_HINT
from weft.reasoning.thought import Sample, Thought


class DirectStrategy:
    """`make_strategy("direct", ...)`.

    Settings: `instruction`, which is added to the question, and `answer`, how its key is read
    (auto, number, choice, text or a function). Raises: `BuildError`.
    """

    name = "direct"

    def __init__(self, model: ModelClient, options: ThinkOptions) -> None:
        settings = read_settings(self.name, options.settings, {"instruction": "", "answer": None})
        self._model = model
        self._options = options
        self._instruction: str = settings["instruction"]
        self._plain = settings["answer"] is None
        self._read = reader(settings["answer"] or "auto")

    def work(self, question: Question) -> NodeFn:
        """See `Strategy.work`."""
        read = schema_key if self._plain and question.schema is not None else self._read

        async def work(context: NodeContext, _: Inputs) -> Thought:
            thread = await ChatThread.begin(context, self._model, self._options, "direct")
            messages = question_messages(question, self._instruction)
            said = await thread.ask("answer", messages, schema=question.schema)
            if not said.ok:
                raise ReasoningError(said.reason, hint=OUT_OF_TOKENS_HINT if said.cut else None)
            whole = said.status == "finished"
            why = "the model came to its end" if whole else "the answer was cut off"
            key = read(said.text, whole)
            record, counts = thread.finish(said.text, why)
            sample = Sample(0, said.text, key, said.tokens, "finished" if whole else "length")
            return Thought(said.text, key, record, counts, (sample,), why=why, cut=said.cut)

        return work


def make(model: ModelClient, options: ThinkOptions) -> DirectStrategy:
    """`direct`: one call. Raises: `BuildError`."""
    return DirectStrategy(model, options)
