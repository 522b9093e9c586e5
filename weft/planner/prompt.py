"""Prompts with which a model of one billion parameters writes or repairs a plan.

Change the version and the golden files with any word: figures name the version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.core.errors import PlanError
from weft.core.generated_text import without_thought
from weft.core.values import JsonSchema, Message, ToolSpec
from weft.planner.plan import PlanStep
from weft.planner.progress import PlanProgress
from weft.planner.signature import parameters_of, signature
from weft.planner.text.writer import parameter_name, write_step


@dataclass(frozen=True, slots=True)
class PlanExample:
    """A question, its tools, and the plan in canonical text."""

    question: str
    tools: tuple[ToolSpec, ...]
    plan: str


def _object(members: dict[str, Any], optional: Sequence[str] = ()) -> JsonSchema:
    required = [name for name in members if name not in optional]
    return {"type": "object", "properties": members, "required": required}


_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_COUNT: Final = {"type": "integer"}
_MAILS: Final = {"type": "array", "items": _object({"sender": _TEXT, "text": _TEXT})}

EXAMPLES: Final = (
    PlanExample(
        "How many more people live in Lima than in Quito, and how warm is it in both?",
        (
            ToolSpec(
                "population",
                "How many people live in a city.",
                _object({"city": _TEXT}),
                _object({"people": _COUNT, "year": _COUNT}),
            ),
            ToolSpec(
                "weather",
                "The weather in a city now.",
                _object({"city": _TEXT, "unit": {"enum": ["C", "F"]}}, ["unit"]),
                _object({"degrees": _NUMBER, "sky": _TEXT}),
            ),
            ToolSpec("subtract", "a - b", _object({"a": _NUMBER, "b": _NUMBER}), _NUMBER),
        ),
        """\
1. population(city="Lima")
2. population(city="Quito")
3. weather(city="Lima")
4. weather(city="Quito")
5. subtract(a=$1.people, b=$2.people)
6. join($5, $3.degrees, $4.degrees)
""",
    ),
    PlanExample(
        "Summarize the unread mails in Bills. If there are more than 10, "
        'tell Ann to "pay" the $50 bill.',
        (
            ToolSpec(
                "read_mails",
                "The mails in a folder.",
                _object({"folder": _TEXT, "unread": {"type": "boolean"}}, ["unread"]),
                _object({"mails": _MAILS, "count": _COUNT}),
            ),
            ToolSpec("summarize", "A text in one sentence.", _object({"text": _TEXT}), _TEXT),
            ToolSpec(
                "send_message", "Tell a person.", _object({"person": _TEXT, "message": _TEXT})
            ),
        ),
        """\
1. read_mails(folder="Bills", unread=true)
2. summarize(text=$item.text) for each $1.mails
3. send_message(person="Ann", message="Please \\"pay\\" the $50 bill.") if $1.count > 10
4. join($2)
""",
    ),
)
"""The examples before the question."""


@dataclass(frozen=True, slots=True)
class PlanWorld:
    """What holds before a plan, and what is to hold after it, as texts of facts."""

    facts: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()


PLAN_PROMPT_VERSION: Final = "plan-1"

_DESCRIPTION: Final = 240
_PARAMETER: Final = 120
_STEP: Final = 400
_REASON: Final = 300
_THOUGHT: Final = 1000
_FACTS: Final = 8000

_RULES: Final = """\
You write a plan of tool calls that answers a question. A call begins as soon as the results it \
refers to are there, so calls that do not refer to one another run at the same time. Make the plan \
as parallel as possible: refer to a result only where it is needed.

Rules:
- Each line is one call: `1. tool(parameter=value)`.
- Use only the tools listed, with the parameters listed. Parameters marked ? may be left out.
- A value is JSON: "text", 3, true, null, ["a", "b"], {"key": 1}.
- $1 is the result of step 1, $1.name a field of it, $1[0] an item. Write it without quotes, and \
only for earlier steps.
- `for each $1` behind a call makes it for every item of that list; its arguments use $item or \
$item.name. Its result is the list of all results.
- `if $1.count > 3` behind a call makes it only then. There is also `if $1`, `if not $1`, and \
==, !=, <, <=, >=.
- The last line is join with the results that answer the question: `4. join($2, $3.name)`.
- Write nothing but the plan."""

_REST: Final = (
    "Write the rest of the plan, beginning with number {number}. What is done can be used as $ and "
    "its number; never call it again. What failed fails again: call something else, or do without."
)


def plan_messages(
    question: str,
    tools: Sequence[ToolSpec],
    *,
    previous: PlanProgress | None = None,
    examples: Sequence[PlanExample] = EXAMPLES,
    instructions: str = "",
    world: PlanWorld | None = None,
) -> tuple[Message, ...]:
    """The messages that ask for a plan, or, after `previous` rounds, for the rest of one.

    The parts that do not depend on the question come first, for the server's prefix cache.
    `instructions` are added to the rules. `world`: what the plan is rehearsed with.
    """
    rules = "\n\n".join(part for part in (_RULES, instructions.strip()) if part)
    messages = [Message("system", rules)]
    for example in examples:
        messages.append(Message("user", _task(example.question, example.tools)))
        messages.append(Message("assistant", example.plan.rstrip("\n")))
    task = _task(question, tools)
    if world is not None:
        task = "\n\n".join((task, *_world(world)))
    if previous is not None:
        task = "\n\n".join((task, progress_section(previous)))
    return (*messages, Message("user", task))


def tools_section(tools: Sequence[ToolSpec]) -> str:
    """The tools in a prompt: for each its signature, its description and its parameters'."""
    return "\n".join(line for tool in tools for line in _lines_of(tool))


def _task(question: str, tools: Sequence[ToolSpec]) -> str:
    there = tools_section(tools) or "There are none: write `1. join()`"
    return f"Tools:\n{there}\n\nQuestion: {question.strip()}"


_WORLD: Final = (
    "These facts hold, and no others:\n{facts}\n\n"
    "Each call needs facts and makes others. `after $1` behind a call makes it wait for step 1 "
    "without its result. Give values, no references, to parameters that facts name."
)


def _world(world: PlanWorld) -> Iterator[str]:
    shown, left = list[str](), _FACTS
    for fact in world.facts:
        left -= len(fact) + 2
        if left < 0:
            break
        shown.append(fact)
    more = len(world.facts) - len(shown)
    facts = f"{', '.join(shown) or 'none'}{f', and {more:,} more' if more else ''}"
    yield _WORLD.format(facts=facts)
    if world.goals:
        yield f"After the plan these have to hold: {', '.join(world.goals)}"


def _lines_of(tool: ToolSpec) -> Iterator[str]:
    yield signature(tool)
    if description := one_line(tool.description, _DESCRIPTION):
        yield f"  {description}"
    for name, schema in parameters_of(tool).items():
        meaning = schema.get("description") if schema is not None else None
        if isinstance(meaning, str) and (meaning := one_line(meaning, _PARAMETER)):
            yield f"  {parameter_name(name)}: {meaning}"
    for word, facts in (("needs", tool.needs), ("makes", tool.makes)):
        if facts:
            yield f"  {word} {', '.join(facts)}"
    if tool.fill:
        yield "  may be left out: it is filled in where a later call needs it"


def progress_section(previous: PlanProgress) -> str:
    """The calls of earlier rounds with their outcomes, and the request for the rest."""
    lines = [f"So far:\n{_history(previous)}"] if _history(previous) else []
    if thought := one_line(previous.thought, _THOUGHT):
        lines.append(f"What is missing: {thought}")
    return "\n\n".join((*lines, _REST.format(number=previous.next_number)))


def _history(previous: PlanProgress) -> str:
    """All steps of earlier rounds in order, each with its outcome."""
    entries: list[tuple[PlanStep, str]] = []
    entries += [(done.step, f"= {done.shown}") for done in previous.done]
    entries += [
        (one.step, f"failed: {one_line(str(one.failure), _REASON)}") for one in previous.failed
    ]
    entries += [
        (one.step, f"did not run: it needs {', '.join(f'${by}' for by in one.by)}")
        for one in previous.blocked
    ]
    entries += [(step, "was left out: its condition did not hold") for step in previous.left_out]
    entries.sort(key=lambda pair: pair[0].number)
    return "\n".join(
        f"{one_line(write_step(step), _STEP)} {_made(previous, step)}{what}"
        for step, what in entries
    )


def _made(previous: PlanProgress, step: PlanStep) -> str:
    made = previous.made.get(step.number)
    return f"(a person changed the call to {one_line(made, _STEP)}) " if made else ""


def one_line(text: str, characters: int) -> str:
    """`text` in one line of at most `characters`, which cannot be mistaken for a plan's line."""
    line = " ".join(text.split())
    return line if len(line) <= characters else f"{line[: characters - 3].rstrip()}..."


_SHOWN = 4000
_NO_TEXT = "(nothing)"


def repair_messages(
    messages: Sequence[Message], text: str, error: PlanError, begun: Sequence[PlanStep]
) -> tuple[Message, ...]:
    """`messages` with the plan written so far, and its error.

    `begun` are its readable steps: they already run, and stay.
    """
    following = max((step.number for step in begun), default=0) + 1
    word = [f"This plan has an error: {error}", ""]
    if begun:
        word += ["These steps are under way; do not write them again, refer to their results:"]
        word += [write_step(step) for step in begun]
        word += ["", f"Write the rest of the plan, beginning with number {following}."]
    else:
        word += ["Write the whole plan again."]
    word += ["Write one call in each line, and the line with join(...) at the end."]
    written = _cut(without_thought(text).lstrip()) or _NO_TEXT
    return (*messages, Message("assistant", written), Message("user", "\n".join(word)))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."
