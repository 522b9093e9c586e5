"""Plans in weft's plan language, held to its grammar: the planner's own prompt, made-up tools."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from evals.speculative.cases.prompt import Prompt
from evals.speculative.cases.words import visits
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.grammar import GrammarLimits, plan_grammar
from weft.planner.prompt import plan_messages

_STEPS: Final = 4
_LIMITS: Final = GrammarLimits(chars=32, items=3)
_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer"}


def _object(**members: JsonSchema) -> JsonSchema:
    return {"type": "object", "properties": members, "required": list(members)}


_TOOLS: Final = (
    ToolSpec(
        "find_visits",
        "The visits of a technician in a town.",
        _object(technician=_TEXT, town=_TEXT),
        {"type": "array", "items": _object(machine=_TEXT, minutes=_COUNT, euros=_COUNT)},
    ),
    ToolSpec("stock", "How many spares of a machine there are.", _object(machine=_TEXT), _COUNT),
    ToolSpec(
        "send_mail", "Write to a person.", _object(to=_TEXT, text=_TEXT), _object(sent=_COUNT)
    ),
)
_QUESTIONS: Final = (
    "Which visits did {a.name} make in {a.town}, and which did {b.name} make in {b.town}?",
    "How many spares of the {a.thing}, the {b.thing} and the {c.thing} are there?",
    'Tell {a.name} that "the {b.thing} in {b.town} runs", and find the visits of {b.name} there.',
)


def prompts(count: int) -> Sequence[Prompt]:
    """`count` prompts, the kinds of questions in turn."""
    return [_prompt(number) for number in range(count)]


def _prompt(number: int) -> Prompt:
    a, b, c = visits(f"question {number}", 3)
    question = _QUESTIONS[number % len(_QUESTIONS)].format(a=a, b=b, c=c)
    messages = plan_messages(question, _TOOLS)
    return Prompt(f"agent_plans-{number}", messages, grammar=_grammar())


@cache
def _grammar() -> str:
    return plan_grammar(_TOOLS, _STEPS, limits=_LIMITS)
