"""Choice by a model: it opens and closes fields of the catalogue, searches, and chooses.

After the semantic search of SayPlan (Rana et al., CoRL 2023) in its collapsed graph. Each request
ends with the view as it is then, so that a contracted field takes no tokens any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from weft.agents.agent import AgentOptions, Observation
from weft.agents.catalogue.choice import ToolChoice, ToolChooser
from weft.agents.catalogue.operations import CatalogueOperations
from weft.agents.catalogue.search import CatalogueIndex
from weft.agents.catalogue.tree import path_text
from weft.agents.catalogue.view import CatalogueView
from weft.agents.chat.conversation import Dialogue, is_constrained
from weft.agents.chat.model_call import ready
from weft.agents.chat.prompt import system
from weft.agents.chat.reply_format import ReplyFormat
from weft.agents.loops.react import ReactAgent
from weft.core.errors import ToolArgumentError
from weft.core.ports import Capabilities, ModelClient, ModelRequest
from weft.core.values import Message
from weft.engine import NodeContext

CATALOGUE_PROMPT_VERSION: Final = "catalogue-1"

_RULES: Final = """\
You choose the tools that somebody else needs in order to fulfil a request. You do not fulfil it \
and cannot use the tools: you open fields of a catalogue, search it, and choose.

Rules:
- Think about the parts of the request first: each may need a tool of its own.
- The catalogue is shown below. Open only fields that may hold a needed tool, all of them in one \
call.
- Where there is no room, close the fields that have nothing; they can be opened again.
- Choose every tool that a part of the request needs, as soon as you see it, by its exact name.
- When each part has a tool, answer with the word done."""


class CatalogueLoop(ReactAgent):
    """The agent loop over the operations of a catalogue, for one request. `view` is its state.

    `read` counts the tokens of all views that the model was shown.
    """

    rules = _RULES

    def __init__(
        self, index: CatalogueIndex, view: CatalogueView, model: ModelClient, options: AgentOptions
    ) -> None:
        self._operations = CatalogueOperations(index, lambda: self.view)
        super().__init__(self._operations, model, options)
        self.view = view
        self.read = 0

    async def _begin(self, context: NodeContext, question: str, form: ReplyFormat) -> Dialogue:
        capabilities = await ready(context, self.model)
        constrained = is_constrained(self.options, capabilities)
        own = self.options.instructions
        opening = [system(self.rules, form, constrained=constrained, instructions=own)]
        dialogue = _ViewDialogue(self.model, self.options, capabilities, opening, self._show)
        dialogue.tell(f"Request: {question}")
        return dialogue

    def _show(self) -> str:
        self.read += self.view.tokens
        return self.view.text

    def _state(self) -> str:
        view = self.view
        opened = sorted(map(path_text, view.expanded))
        return f"{opened} {view.found} {view.chosen} "

    def _observe(self, calls: Sequence[Observation]) -> None:
        for call in calls:
            if call.outcome.ok:
                try:
                    self.view = self._operations.applied(self.view, call.tool, call.arguments)
                except ToolArgumentError:
                    return  # its result is from another catalogue, in a record


class _ViewDialogue(Dialogue):
    """A dialogue whose requests end with the view of the moment, which no later request repeats."""

    def __init__(
        self,
        model: ModelClient,
        options: AgentOptions,
        capabilities: Capabilities,
        opening: Iterable[Message],
        show: Callable[[], str],
    ) -> None:
        super().__init__(model, options, capabilities, opening)
        self._show = show

    def _request(self, form: ReplyFormat) -> ModelRequest:
        request = super()._request(form)
        *before, last = request.messages
        shown = Message(last.role, f"{last.content}\n\n{self._show()}")
        return replace(request, messages=(*before, shown))


class ModelChooser:
    """Implements `ToolChooser` with `model`. Where it chooses nothing, `otherwise` chooses.

    `calls`: the most operations.
    """

    def __init__(
        self,
        index: CatalogueIndex,
        model: ModelClient,
        options: AgentOptions,
        otherwise: ToolChooser,
        calls: int,
    ) -> None:
        self._index = index
        self._model = model
        self._options = replace(options, calls=calls, schema=None, catalogue=None)
        self._otherwise = otherwise

    async def choose(self, context: NodeContext, /, request: str, limit: int) -> ToolChoice:
        fields = tuple(self._index.fields(request))
        view = CatalogueView(self._index.catalogue, limit, fields)
        loop = CatalogueLoop(self._index, view, self._model, self._options)
        await loop.answer(context, request)
        if loop.view.chosen:
            return ToolChoice(loop.view.chosen, loop.view.chosen_tokens, loop.read, "model")
        context.log("the model chose no tool: they are chosen by words")
        return replace(await self._otherwise.choose(context, request, limit), read=loop.read)
