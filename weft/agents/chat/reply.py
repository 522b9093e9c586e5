"""Parses a model's reply: calls of tools, a request for another plan, or an answer.

Two formats are accepted, independent of the requested one: the JSON of
`weft.agents.chat.reply_format`, and labelled lines (`Thought:`, `Call:`, `Replan:`, `Answer:`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from weft.agents.chat.model_output import (
    decode_json,
    excerpt,
    find_object,
    first_json,
    fit_answer,
    text_of,
)
from weft.agents.chat.repetition import repeats_itself
from weft.agents.chat.reply_format import ReplyFormat
from weft.core.errors import ModelOutputError, OutputTruncated
from weft.core.generated_text import is_blank, without_thought
from weft.core.ports import only_thought
from weft.core.values import Completion

_LABEL: Final = re.compile(
    r"^[ \t]*[*_]{0,2}(thought|call|action|replan|(?:final )?answer)[*_]{0,2}[ \t]*:[*_]{0,2}",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class LabelledReply:
    """The text after each label; of thoughts the first."""

    thought: str = ""
    calls: tuple[str, ...] = ()
    replan: str | None = None
    answer: str | None = None


def split_labels(text: str) -> LabelledReply | None:
    """The parts of `text`, or None where no line has a label. An answer extends to the end."""
    thought, replan, answer = "", None, None
    calls: list[str] = []
    found = list(_LABEL.finditer(text))
    for place, label in enumerate(found):
        end = found[place + 1].start() if place + 1 < len(found) else len(text)
        part = text[label.end() : end].strip()
        match label[1].lower():
            case "thought":
                thought = thought or part
            case "call" | "action":
                calls.append(part)
            case "replan":
                replan = part if replan is None else replan
            case _:
                answer = text[label.end() :].strip()
                break
    return LabelledReply(thought, tuple(calls), replan, answer) if found else None


_NAMES: Final = ("name", "tool")
_ARGUMENTS: Final = ("arguments", "parameters", "args")
_REPLY_KEYS: Final = ("next", "call", "calls", "replan", "answer")


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A call that a model requested; the tool may not exist.

    `problem`: why it cannot be tried.
    """

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """One reply: `calls`, or `replan` (what is missing), or `answer`.

    `left_out` counts calls beyond the limit of the format.
    """

    thought: str = ""
    calls: tuple[RequestedCall, ...] = ()
    left_out: int = 0
    replan: str | None = None
    answer: Any = None


def read_reply(completion: Completion, form: ReplyFormat) -> ParsedReply:
    """The reply in the text of `completion`. An answer is never truncated.

    Calls take precedence over an answer after them, which was written without their results.

    Raises: `ModelOutputError` with a message for the model.
    """
    check_repetition(completion.text.strip())
    text = without_thought(completion.text).strip()
    cut_off = completion.finish_reason == "length"
    try:
        if only_thought(completion):
            raise ModelOutputError("it is a thought, and no answer comes after it")
        return _read(text, form, cut_off)
    except ModelOutputError as error:
        if cut_off:
            raise cut_off_error(completion) from error
        raise


def check_repetition(text: str) -> None:
    """Raises: `ModelOutputError` when `text` repeats itself."""
    if repeats_itself(text):
        raise ModelOutputError("it repeats itself", hint="say each thing once, and then end")


def cut_off_error(completion: Completion) -> OutputTruncated:
    """The error of a reply that reached its token limit."""
    tokens = completion.usage.completion_tokens or "too many"
    return OutputTruncated(f"it was cut off after {tokens} tokens", hint="write less")


def _read(text: str, form: ReplyFormat, cut_off: bool) -> ParsedReply:
    if is_blank(text):
        raise ModelOutputError("it was empty")
    found = split_labels(text)
    if found is None or text.startswith(("{", "```")):
        written = find_object(_REPLY_KEYS, text)
        if written is not None:
            return _from_json(written, form)
    if found is None:
        found = _unlabelled(text, form)
    if cut_off and found.answer is not None and not found.calls:
        raise ModelOutputError("the answer is not complete")
    return _from_labels(found, form)


def _unlabelled(text: str, form: ReplyFormat) -> LabelledReply:
    """The unlabelled text as the answer, where only an answer is allowed."""
    broken = text.startswith("{") and form.answer is None
    if form.final and not broken:
        return LabelledReply(answer=text)
    if broken:
        decode_json(text, "it")  # raises with the position of the error
    raise ModelOutputError("it holds neither a call nor an answer in the form asked for")


def _from_json(written: Mapping[str, Any], form: ReplyFormat) -> ParsedReply:
    following = written.get("next", written)
    if not isinstance(following, Mapping):
        raise ModelOutputError('"next" is not an object')
    thought = written.get("thought")
    thought = thought if isinstance(thought, str) else ""
    calls = following.get("calls", [])
    if "call" in following:
        calls = [following["call"]]
    if not isinstance(calls, list):
        raise ModelOutputError('"calls" is not a list')
    if calls:
        return _with_calls(thought, calls, form)
    if following.get("replan") is not None:
        return _with_replan(thought, text_of(following["replan"]), form)
    if "answer" not in following:
        raise ModelOutputError("it holds neither a call nor an answer")
    return ParsedReply(thought, answer=fit_answer(following["answer"], form.answer))


def _from_labels(found: LabelledReply, form: ReplyFormat) -> ParsedReply:
    if found.calls:
        return _with_calls(found.thought, [first_json(text) for text in found.calls], form)
    if found.replan is not None:
        return _with_replan(found.thought, found.replan, form)
    if found.answer is None:
        raise ModelOutputError("there is a thought, but neither a call nor an answer")
    return ParsedReply(found.thought, answer=fit_answer(found.answer, form.answer))


def _with_calls(thought: str, calls: list[Any], form: ReplyFormat) -> ParsedReply:
    if not form.calls:
        raise ModelOutputError("no call can be made any more: an answer is needed")
    kept = tuple(_requested(call) for call in calls[: form.calls])
    return ParsedReply(thought, kept, len(calls) - len(kept))


def _requested(call: Any) -> RequestedCall:
    if not isinstance(call, Mapping):
        raise ModelOutputError('a call is an object with "name" and "arguments"')
    name = next((call[key] for key in _NAMES if key in call), None)
    if not isinstance(name, str) or not name:
        raise ModelOutputError('a call has no "name"')
    arguments: Any = next((call[key] for key in _ARGUMENTS if key in call), {})
    if isinstance(arguments, str):
        arguments = decode_json(arguments, f"the arguments of {excerpt(name, 80)}")
    if not isinstance(arguments, Mapping):
        raise ModelOutputError(f"the arguments of {excerpt(name, 80)} are not an object")
    return RequestedCall(name, arguments)


def _with_replan(thought: str, missing: str, form: ReplyFormat) -> ParsedReply:
    if not form.replan:
        raise ModelOutputError("nothing more can be planned: an answer is needed")
    return ParsedReply(thought, replan=missing.strip() or thought)
