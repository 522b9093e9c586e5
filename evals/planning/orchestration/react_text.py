"""ReAct in its published spelling (Yao et al., arXiv 2210.03629): one text that grows, no engine.

    Thought: I need to find out what tea costs.
    Action: price[tea]
    Observation: {"amount": 3}
    ...
    Answer: $3

Each `Thought` and `Action` is one model call, which ends where the observation begins; a call that
fails is an observation too. Leaner than published: turns have no numbers, and the answer stands
behind `Answer:`, which is shorter than `Action: Finish[...]` (read as well). Knows no task.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.core.errors import ModelOutputError, ToolError
from weft.core.ports import ModelClient, ModelRequest, Sampling, ToolRunner, complete
from weft.core.values import Message, ToolSpec

TURNS: Final = 64
_OBSERVATION: Final = "\nObservation:"
_INSTRUCTIONS: Final = (
    "Answer the question. Alternate a line `Thought: ...` and a line `Action: tool[argument]`;"
    " several arguments are one JSON object. The result follows as `Observation: ...`."
    " When you know the answer, write `Answer: ...`. Tools:"
)
_ACTION: Final = re.compile(r"^Action: *([^\[\n]+?) *\[(.*)\]\s*$", re.MULTILINE | re.DOTALL)
_ANSWER: Final = re.compile(r"^Answer: *(.*)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Action:
    """A call as the model wrote it: `argument` is what stands in the brackets."""

    tool: str
    argument: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of the transcript."""

    text: str


class ReactText:
    """One question: `transcript` is the prompt that grows. Raises `ModelOutputError` in `run`."""

    def __init__(self, model: ModelClient, tools: ToolRunner, turns: int = TURNS) -> None:
        self._model = model
        self._tools = tools
        self._turns = turns
        self._specs = {spec.name: spec for spec in tools.specs()}
        self.transcript = ""

    async def run(self, question: str) -> str:
        """The answer. Raises: `ModelOutputError` where none comes in so many turns."""
        self.transcript = f"{_prompt(self._specs)}\nQuestion: {question}\n"
        for _ in range(self._turns):
            said = await self._said()
            turn = read_turn(said)
            if isinstance(turn, Answer):
                return turn.text
            observed = await self._observed(turn)
            self.transcript += f"{said}{_OBSERVATION} {observed}\n"
        raise ModelOutputError(f"no answer in {self._turns} turns", hint="allow more turns")

    async def _said(self) -> str:
        request = ModelRequest(
            (Message("user", self.transcript),), sampling=Sampling(stop=(_OBSERVATION,))
        )
        return (await complete(self._model, request)).text.rstrip()

    async def _observed(self, action: Action | None) -> str:
        if action is None:
            return "write `Action: tool[argument]` or `Answer: ...`"
        spec = self._specs.get(action.tool)
        if spec is None:
            return f"there is no tool {action.tool}; there are: {', '.join(self._specs)}"
        try:
            arguments = read_arguments(action, spec)
            return json.dumps(await self._tools.call(action.tool, arguments))
        except (ToolError, ModelOutputError) as error:
            return f"the call failed: {error}"


def read_turn(text: str) -> Action | Answer | None:
    """What the model wants next; None: neither a call nor an answer."""
    action = _ACTION.search(text)
    if action is not None:
        tool, argument = action[1], action[2]
        return Answer(argument) if tool == "Finish" else Action(tool, argument)
    answer = _ANSWER.search(text)
    return Answer(answer[1].strip()) if answer else None


def read_arguments(action: Action, spec: ToolSpec) -> Mapping[str, Any]:
    """A JSON object, or the text of the one parameter that the tool needs.

    Raises: `ModelOutputError` for text that no one parameter takes.
    """
    if action.argument.startswith("{"):
        try:
            return dict(json.loads(action.argument))
        except ValueError as error:
            raise ModelOutputError(f"the arguments are not JSON: {error}") from error
    parameter = single_parameter(spec)
    if parameter is None:
        raise ModelOutputError(f"{action.tool} takes its arguments as one JSON object")
    return {parameter: action.argument}


def write_action(tool: str, arguments: Mapping[str, Any], spec: ToolSpec) -> str:
    """`tool[argument]` in the shortest form that is read back as these arguments."""
    values = list(arguments.values())
    plain = list(arguments) == [single_parameter(spec)] and isinstance(values[0], str)
    if plain and values[0] and not values[0].startswith("{") and values[0].isprintable():
        return f"Action: {tool}[{values[0]}]"
    return f"Action: {tool}[{json.dumps(arguments)}]"


def single_parameter(spec: ToolSpec) -> str | None:
    """The parameter that text alone is meant for: the only one that is needed, or that there is."""
    required = list(spec.parameters.get("required", ()))
    names = required or list(spec.parameters.get("properties", ()))
    return names[0] if len(names) == 1 else None


def _prompt(specs: Mapping[str, ToolSpec]) -> str:
    tools = "\n".join(
        f"{spec.name}[{', '.join(spec.parameters.get('properties', ()))}]: {spec.description}"
        for spec in specs.values()
    )
    return f"{_INSTRUCTIONS}\n{tools}"
