"""The prompts that all loops share: rules, tools, reply format, results, corrections.

Change a prompt, and its version and golden file change with it: figures name the version.
`weft.agents.chat.reply` parses both reply formats, whichever was asked for.
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
    """The first message. `constrained`: the model is held to JSON; else it writes labelled lines.

    `instructions` are the user's own, and come last.
    """
    spelled = _as_json(form) if constrained else _as_lines(form)
    parts = [rules, _tools(form.tools), spelled, instructions]
    return Message("system", "\n\n".join(part for part in parts if part))


def _tools(tools: Sequence[ToolSpec]) -> str:
    """One line of JSON for each tool: what it takes, and what it returns where that is known."""
    return "\n".join(["Tools:", *map(_tool, tools)]) if tools else ""


def _tool(tool: ToolSpec) -> str:
    told: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    if tool.result is not None:
        told["returns"] = tool.result
    return json.dumps(told, ensure_ascii=False, default=dict)


def _as_json(form: ReplyFormat) -> str:
    ways = []
    if form.calls:
        inside = f'"calls": [{_CALL}, ...]' if form.many else f'"call": {_CALL}'
        ways.append(f"- to use {'tools' if form.many else 'a tool'}: " + _reply(inside))
    if form.replan:
        ways.append("- to ask for more: " + _reply('"replan": "what is missing"'))
    ways.append("- to answer: " + _reply('"answer": ANSWER'))
    begin = "Reply with one JSON object and nothing else:"
    return "\n".join([begin, *ways, f"ANSWER is {answer_words(form.answer)}"])


def _reply(inside: str) -> str:
    return f'{{"thought": "why", "next": {{{inside}}}}}'


def _as_lines(form: ReplyFormat) -> str:
    ways = []
    if form.calls:
        more = "\nCall: ..." if form.many else ""
        which = "tools, with a line for each call" if form.many else "a tool"
        ways.append(f"To use {which}:\nThought: why\nCall: {_CALL}{more}")
    if form.replan:
        ways.append("To ask for more:\nThought: why\nReplan: what is missing")
    ways.append("To answer:\nThought: why\nAnswer: ANSWER")
    begin = "Reply in one of these forms, with these labels:"
    return "\n\n".join([begin, *ways, f"ANSWER is {answer_words(form.answer)}"])


def answer_words(schema: JsonSchema | None) -> str:
    """What an answer is: a text, or JSON of a schema."""
    if schema is None:
        return "a text that answers the question, and is short where the question is simple."
    told = json.dumps(schema, ensure_ascii=False, default=dict)
    return f"JSON that fits this JSON Schema: {told}"


TURNS_PROMPT_VERSION: Final = "turns-3"

NO_TEXT: Final = "(nothing)"
"""Stands for a reply without text, which not every server takes back."""

STOP: Final = ("\nResults of the calls:",)
"""Where a model that is not held to a form stops: results are not its to write."""

LAST: Final = "No call is left. Answer now with what you know."


def results(lines: Sequence[str], *notes: str) -> str:
    """The results of calls, one to a line, and what else there is to say."""
    told = "Results of the calls:\n" + ("\n".join(lines) if lines else "(none)")
    return "\n\n".join([told, *(note for note in notes if note)])


def left_out(calls: int) -> str:
    """That calls were not made because they were too many; nothing where none was."""
    if not calls:
        return ""
    which = "One more call was" if calls == 1 else f"{calls:,} more calls were"
    return f"{which} left out: that is more than may be made."


def repeated(number: int) -> str:
    """That a call was made before."""
    return (
        f"This call was made before: its result is number {number}, and it was not made again."
        " Make a different call, or answer."
    )


def correction(problem: str, form: ReplyFormat, *, constrained: bool) -> str:
    """That a reply cannot be used, why, and what is wanted."""
    if constrained:
        wanted = "Give the answer now." if form.final else "Use one of the forms above."
    else:
        calls, replan = ["`Call:`"] * bool(form.calls), ["`Replan:`"] * form.replan
        wanted = f"Write a line that begins with {' or '.join([*calls, *replan, '`Answer:`'])}."
    return f"Your reply cannot be used: {problem}. {wanted}"
