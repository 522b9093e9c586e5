"""The prompts that all loops share: rules, tools, reply format, results, corrections.

Change the version and the golden file with any prompt: figures name the version.
`weft.agents.chat.reply` parses both reply formats, independent of the requested one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from weft.agents.chat.reply_format import ReplyFormat
from weft.core.values import JsonSchema, Message, ToolSpec

SYSTEM_PROMPT_VERSION: Final = "system-1"

_CALL = '{"name": "TOOL", "arguments": {"PARAMETER": VALUE}}'


def system(rules: str, form: ReplyFormat, *, constrained: bool, instructions: str) -> Message:
    """The first message. `constrained`: replies are JSON by a schema; otherwise labelled lines.

    `instructions` are the user's, and come last.
    """
    spelled = _as_json(form) if constrained else _as_lines(form)
    parts = [rules, _tools(form.tools), spelled, instructions]
    return Message("system", "\n\n".join(part for part in parts if part))


def _tools(tools: Sequence[ToolSpec]) -> str:
    """One line of JSON for each tool: name, description, parameters, and result if declared."""
    return "\n".join(["Tools:", *map(_tool, tools)]) if tools else ""


def _tool(tool: ToolSpec) -> str:
    fields: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    if tool.result is not None:
        fields["returns"] = tool.result
    return json.dumps(fields, ensure_ascii=False, default=dict)


def _as_json(form: ReplyFormat) -> str:
    forms = []
    if form.calls:
        inside = f'"calls": [{_CALL}, ...]' if form.many else f'"call": {_CALL}'
        forms.append(f"- to use {'tools' if form.many else 'a tool'}: " + _reply(inside))
    if form.replan:
        forms.append("- to ask for more: " + _reply('"replan": "what is missing"'))
    forms.append("- to answer: " + _reply('"answer": ANSWER'))
    begin = "Reply with one JSON object and nothing else:"
    return "\n".join([begin, *forms, f"ANSWER is {answer_words(form.answer)}"])


def _reply(inside: str) -> str:
    return f'{{"thought": "why", "next": {{{inside}}}}}'


def _as_lines(form: ReplyFormat) -> str:
    forms = []
    if form.calls:
        more = "\nCall: ..." if form.many else ""
        which = "tools, with a line for each call" if form.many else "a tool"
        forms.append(f"To use {which}:\nThought: why\nCall: {_CALL}{more}")
    if form.replan:
        forms.append("To ask for more:\nThought: why\nReplan: what is missing")
    forms.append("To answer:\nThought: why\nAnswer: ANSWER")
    begin = "Reply in one of these forms, with these labels:"
    return "\n\n".join([begin, *forms, f"ANSWER is {answer_words(form.answer)}"])


def answer_words(schema: JsonSchema | None) -> str:
    """The description of an answer: a text, or JSON of a schema."""
    if schema is None:
        return "a text that answers the question, and is short where the question is simple."
    text = json.dumps(schema, ensure_ascii=False, default=dict)
    return f"JSON that fits this JSON Schema: {text}"


TURNS_PROMPT_VERSION: Final = "turns-3"

NO_TEXT: Final = "(nothing)"
"""Replaces a reply without text, which some servers reject."""

STOP: Final = ("\nResults of the calls:",)
"""The stop sequence of unconstrained replies: the loop writes the results, not the model."""

LAST: Final = "No call is left. Answer now with what you know."


def results(lines: Sequence[str], *notes: str) -> str:
    """The results of calls, one per line, and notes."""
    text = "Results of the calls:\n" + ("\n".join(lines) if lines else "(none)")
    return "\n\n".join([text, *(note for note in notes if note)])


def left_out(calls: int) -> str:
    """A note on calls that were left out; empty for none."""
    if not calls:
        return ""
    which = "One more call was" if calls == 1 else f"{calls:,} more calls were"
    return f"{which} left out: that is more than may be made."


def repeated(number: int) -> str:
    """A note that a call was made before."""
    return (
        f"This call was made before: its result is number {number}, and it was not made again."
        " Make a different call, or answer."
    )


def correction(problem: str, form: ReplyFormat, *, constrained: bool) -> str:
    """The correction of an unusable reply: the problem, and the expected form."""
    if constrained:
        wanted = "Give the answer now." if form.final else "Use one of the forms above."
    else:
        calls, replan = ["`Call:`"] * bool(form.calls), ["`Replan:`"] * form.replan
        wanted = f"Write a line that begins with {' or '.join([*calls, *replan, '`Answer:`'])}."
    return f"Your reply cannot be used: {problem}. {wanted}"
