"""Short prompts for planners that were trained on them, and the answers they learn to write.

`weft train-planner` trains on exactly these messages, and a model that says so in its capabilities
(`plan_form`) is asked with them: its weights know the rules, so that a prompt has only the tools
and the question. Change the name of the form with any word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from weft.core.values import Message, ToolSpec
from weft.planner.plan import Plan, PlanStep
from weft.planner.progress import PlanProgress
from weft.planner.prompt import PlanWorld, one_line, plan_messages, progress_section
from weft.planner.signature import parameters_of, signature
from weft.planner.text.writer import parameter_name, write

COMPACT: Final = "compact-1"
"""The form of these prompts, as `Capabilities.plan_form` has it."""

ASK_CHARS: Final = 120
"""The most characters of the line that names missing parameters."""

_PLAN: Final = "Plan the calls."
_CONCLUDE: Final = "Answer from the results."
_DESCRIPTION: Final = 120
_PARAMETER: Final = 48
_ARTICLE: Final = re.compile(r"^\s*(?:specify |provide |set |enter )?(?:the |an? )?", re.IGNORECASE)
_EMPTY: Final = frozenset(
    {
        *("a", "an", "the", "of", "for", "to", "in", "on", "at", "by", "or", "and", "is", "be"),
        *("it", "its", "as", "with", "from", "that", "this", "which", "whic", "shou", "will"),
        *("want", "need", "spec", "prov", "valu", "para", "give", "get", "desi", "used", "use"),
        *("you", "your", "name", "id", "uniq", "iden", "type"),
    }
)
"""Stems of words that explain nothing."""
_MISSING: Final = "missing: "


def planning_messages(
    form: str,
    question: str,
    tools: Sequence[ToolSpec],
    *,
    previous: PlanProgress | None = None,
    instructions: str = "",
    world: PlanWorld | None = None,
) -> tuple[Message, ...]:
    """`plan_messages` in the `plan_form` of a model: short where it was trained on short ones.

    Those know nothing of a `world` to rehearse in, which is told in the long form.
    """
    if form == COMPACT and world is None:
        return compact_messages(question, tools, previous=previous, instructions=instructions)
    return plan_messages(question, tools, previous=previous, instructions=instructions, world=world)


def compact_messages(
    question: str,
    tools: Sequence[ToolSpec],
    *,
    previous: PlanProgress | None = None,
    instructions: str = "",
) -> tuple[Message, ...]:
    """The messages that ask for a plan, or, after `previous` rounds, for the rest of one."""
    system = " ".join(part for part in (_PLAN, instructions.strip()) if part)
    parts = [*(line for tool in tools for line in _lines_of(tool)), f"Question: {question.strip()}"]
    if previous is not None:
        parts.append(progress_section(previous))
    return Message("system", system), Message("user", "\n".join(parts))


def compact_plan(steps: Sequence[PlanStep], missing: Sequence[str] = ()) -> str:
    """The plan that answers: all calls, and the join of all results.

    Without steps no tool fits, or parameters are `missing` in the question, which a line names.
    """
    thought = _MISSING + ", ".join(missing) if missing else ""
    return write(Plan(tuple(steps), (), thought)).rstrip("\n")


def missing_parameters(plan: Plan) -> tuple[str, ...]:
    """The parameters that `plan` asks for; none where it makes calls."""
    if plan.steps or not plan.thought.startswith(_MISSING):
        return ()
    names = plan.thought.removeprefix(_MISSING).split(",")
    return tuple(name.strip() for name in names if name.strip())


def refusal(plan: Plan) -> str:
    """What a plan without steps says to the person who asked."""
    if missing := missing_parameters(plan):
        return f"The question leaves out: {', '.join(missing)}."
    return "No tool that is offered fits the question."


def conclusion_messages(question: str, results: Sequence[str]) -> tuple[Message, ...]:
    """The messages that ask for the answer, from a line for each call with its result."""
    found = "\n".join(results) or "(none)"
    text = f"Question: {question.strip()}\n{found}"
    return Message("system", _CONCLUDE), Message("user", text)


def _lines_of(tool: ToolSpec) -> Iterator[str]:
    """Signature and description of a tool, and a line for each parameter that its name does not
    explain.
    """
    described = one_line(tool.description, _DESCRIPTION)
    yield f"{signature(tool)}: {described}" if described else signature(tool)
    known = _stems(f"{tool.name} {tool.description}")
    for name, schema in parameters_of(tool).items():
        meaning = schema.get("description") if schema is not None else None
        if isinstance(meaning, str) and _stems(meaning) - known - _stems(name) - _EMPTY:
            yield f" {parameter_name(name)}: {one_line(_ARTICLE.sub('', meaning), _PARAMETER)}"


def _stems(text: str) -> set[str]:
    """The first four letters of the words of a text or a name."""
    words = re.findall(r"[A-Za-z][a-z]+|[A-Z]{2,}|[0-9]+", text)
    return {word.lower()[:4] for word in words}
