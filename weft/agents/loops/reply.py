"""What a model wrote, as calls, a wish for another plan, or an answer. Runs nothing of it.

Two spellings are read whichever was asked for: the JSON of `weft.agents.loops.form`, and lines
that begin with a label (`Thought:`, `Call:`, `Replan:`, `Answer:`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.agents.loops.excerpt import excerpt, text_of
from weft.agents.loops.fitting import fitted
from weft.agents.loops.form import Form
from weft.agents.loops.labels import Labelled, labelled
from weft.agents.loops.repetition import repeats_itself
from weft.agents.loops.written import decoded, first_json, object_with
from weft.core.errors import ModelOutputError
from weft.core.generated_text import is_blank
from weft.core.values import Completion

_NAMES: Final = ("name", "tool")
_ARGUMENTS: Final = ("arguments", "parameters", "args")
_WAYS: Final = ("next", "call", "calls", "replan", "answer")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that a model asked for; whether there is such a tool has not been looked at."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply: `calls`, or else `replan` (what is missing), or else `answer`.

    `left_out` counts calls above the number that the form allows.
    """

    thought: str = ""
    calls: tuple[Wanted, ...] = ()
    left_out: int = 0
    replan: str | None = None
    answer: Any = None


def read_reply(completion: Completion, form: Form) -> Reply:
    """The reply in the text of `completion`. Nothing of an answer is ever cut away.

    Calls count more than an answer beside them: that was written before their results were known.

    Raises: `ModelOutputError` in words that the model can act on.
    """
    text = completion.text.strip()
    if repeats_itself(text):
        raise ModelOutputError("it repeats itself", hint="say each thing once, and then end")
    cut_off = completion.finish_reason == "length"
    try:
        return _read(text, form, cut_off)
    except ModelOutputError as error:
        if not cut_off:
            raise
        raise ModelOutputError(
            f"it was cut off after {completion.usage.completion_tokens or 'too many'} tokens",
            hint="write less",
        ) from error


def _read(text: str, form: Form, cut_off: bool) -> Reply:
    if is_blank(text):
        raise ModelOutputError("it was empty")
    found = labelled(text)
    if found is None or text.startswith(("{", "```")):
        written = object_with(_WAYS, text)
        if written is not None:
            return _from_json(written, form)
    if found is None:
        found = _unlabelled(text, form)
    if cut_off and found.answer is not None and not found.calls:
        raise ModelOutputError("the answer is not complete")
    return _from_labels(found, form)


def _unlabelled(text: str, form: Form) -> Labelled:
    """Where only an answer will do, text without any form is the answer."""
    broken = text.startswith("{") and form.answer is None
    if form.final and not broken:
        return Labelled(answer=text)
    if broken:
        decoded(text, "it")  # says where it breaks, if it does
    raise ModelOutputError("it holds neither a call nor an answer in the form asked for")


def _from_json(written: Mapping[str, Any], form: Form) -> Reply:
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
    return Reply(thought, answer=fitted(following["answer"], form.answer))


def _from_labels(found: Labelled, form: Form) -> Reply:
    if found.calls:
        return _with_calls(found.thought, [first_json(text) for text in found.calls], form)
    if found.replan is not None:
        return _with_replan(found.thought, found.replan, form)
    if found.answer is None:
        raise ModelOutputError("there is a thought, but neither a call nor an answer")
    return Reply(found.thought, answer=fitted(found.answer, form.answer))


def _with_calls(thought: str, calls: list[Any], form: Form) -> Reply:
    if not form.calls:
        raise ModelOutputError("no call can be made any more: an answer is needed")
    kept = tuple(_wanted(call) for call in calls[: form.calls])
    return Reply(thought, kept, len(calls) - len(kept))


def _wanted(call: Any) -> Wanted:
    if not isinstance(call, Mapping):
        raise ModelOutputError('a call is an object with "name" and "arguments"')
    name = next((call[key] for key in _NAMES if key in call), None)
    if not isinstance(name, str) or not name:
        raise ModelOutputError('a call has no "name"')
    arguments: Any = next((call[key] for key in _ARGUMENTS if key in call), {})
    if isinstance(arguments, str):
        arguments = decoded(arguments, f"the arguments of {excerpt(name, 80)}")
    if not isinstance(arguments, Mapping):
        raise ModelOutputError(f"the arguments of {excerpt(name, 80)} are not an object")
    return Wanted(name, arguments)


def _with_replan(thought: str, missing: str, form: Form) -> Reply:
    if not form.replan:
        raise ModelOutputError("nothing more can be planned: an answer is needed")
    return Reply(thought, replan=missing.strip() or thought)
