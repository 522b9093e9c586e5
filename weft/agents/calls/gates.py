"""Three gates. Each returns the reason why an item is refused, or None."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from weft.agents.calls.item import CallItem
from weft.agents.calls.writing import intent, literal, words_of
from weft.validation import violation

Reason = Literal[
    "unknown_tool", "misfit", "no_answer", "answer_of_style", "wrong_ask", "tool_failed",
    "literal_absent", "intent_absent", "number_unused", "value_given", "tool_fits",
]  # fmt: skip
_FITS: Final = 0.75
"""A tool fits a query that has this share of the words of its purpose."""
Runnable = Mapping[str, Callable[..., object]]


@dataclass(frozen=True, slots=True)
class CallRefusal:
    """Which gate refused an item and why; `detail` is for people."""

    gate: Literal["format", "execution", "semantic"]
    reason: Reason
    detail: str


def format_gate(item: CallItem) -> CallRefusal | None:
    """Names are offered, arguments fit the schemas and no others, the answer suits the style."""
    offered = {tool.name: tool for tool in item.tools}
    for call in item.calls:
        if call.name not in offered:
            return CallRefusal("format", "unknown_tool", call.name)
        tool = offered[call.name]
        if extra := sorted(set(call.arguments) - set(tool.properties)):
            return CallRefusal("format", "misfit", f"{call.name}: no parameter {extra[0]}")
        if why := violation(dict(call.arguments), dict(tool.parameters)):
            return CallRefusal("format", "misfit", f"{call.name}: {why}")
    return _answer_of_style(item)


def execution(item: CallItem, runnable: Runnable) -> CallRefusal | None:
    """The calls of tools that can run here do not raise; others are not run."""
    for call in item.calls:
        if function := runnable.get(call.name):
            try:
                function(**call.arguments)
            except Exception as error:  # noqa: BLE001 - a tool may raise anything
                return CallRefusal(
                    "execution", "tool_failed", f"{call.name}: {type(error).__name__}"
                )
    return None


def semantic(item: CallItem) -> CallRefusal | None:
    """The query has every literal as often as the calls, every intent, and no other number.

    Rules, not a model: arguments that are exchanged between two calls pass.
    """
    query = item.query.lower()
    wanted = Counter(
        literal(value).lower()
        for call in item.calls
        for value in call.arguments.values()
        if isinstance(value, (str, int, float)) and not isinstance(value, bool)
    )
    for text in wanted:
        if not re.search(rf"(?<!\w){re.escape(text)}(?!\w)", query):
            return CallRefusal("semantic", "literal_absent", text)
    tools = {tool.name: tool for tool in item.tools}
    for call in item.calls:
        if not _asks_for(query, intent(tools[call.name]) + " " + words_of(call.name)):
            return CallRefusal("semantic", "intent_absent", call.name)
    return _numbers(item, query, wanted) or _unfit(item, query)


def check_item(item: CallItem, runnable: Runnable | None = None) -> CallRefusal | None:
    """The first refusal of the three gates, in their order."""
    return format_gate(item) or execution(item, runnable or {}) or semantic(item)


def _answer_of_style(item: CallItem) -> CallRefusal | None:
    many = item.style in {"parallel", "parallel_multiple"}
    none = item.style in {"irrelevance", "missing"}
    count = len(item.calls)
    if count != 0 if none else count < 2 if many else count != 1:
        return CallRefusal("format", "answer_of_style", f"{item.style} with {count} calls")
    if (item.style == "missing") != bool(item.ask):
        return CallRefusal("format", "wrong_ask", f"{item.style} asks for {list(item.ask)}")
    if not all(any(name in tool.required for tool in item.tools) for name in item.ask):
        return CallRefusal("format", "wrong_ask", "no offered tool requires what is asked for")
    return None


def _numbers(item: CallItem, query: str, wanted: Counter[str]) -> CallRefusal | None:
    if not item.calls:
        return None
    known = " ".join(wanted) + " ".join(intent(tool) for tool in item.tools)
    for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)", query):
        if number not in known:
            return CallRefusal("semantic", "number_unused", number)
    return None


def _unfit(item: CallItem, query: str) -> CallRefusal | None:
    if item.style == "irrelevance":
        for tool in item.tools:
            if _share_said(query, intent(tool)) >= _FITS:
                return CallRefusal("semantic", "tool_fits", tool.name)
    for name in item.ask:
        if re.search(rf"(?<!\w){re.escape(words_of(name))}(?: is| should be|:) ", query):
            return CallRefusal("semantic", "value_given", name)
    return None


def _asks_for(query: str, purpose: str) -> bool:
    return _share_said(query, purpose) > 0


def _share_said(query: str, purpose: str) -> float:
    """The share, 0 to 1, of the stems of `purpose` that the query has; 1 without stems."""
    stems = {word[:5] for word in re.findall(r"[a-z]{4,}", purpose.lower())}
    return sum(stem in query for stem in stems) / len(stems) if stems else 1.0
