"""The gates `format` and `semantic`. Each returns the reason why an item is refused, or None."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from weft.agents.calls.catalogue import CallTool
from weft.agents.calls.item import CallItem, GoldCall, reference
from weft.agents.calls.kinds import words_of
from weft.agents.calls.pools import listed
from weft.agents.calls.purpose import COMPUTE, LOOKUP
from weft.agents.calls.reading import named_numbers, names_in, numbers_in, plain, says, stems
from weft.agents.calls.writing import intent
from weft.validation import violation

Reason = Literal[
    "unknown_tool", "misfit", "bad_reference", "no_answer", "answer_of_style", "wrong_ask",
    "repeated_call", "tool_failed", "empty_result", "literal_absent", "value_exchanged",
    "intent_absent", "value_unused", "tool_left_out", "value_given", "tool_fits", "unreadable",
    "judged_wrong", "reworded",
]  # fmt: skip
_FITS: Final = 0.6
"""A tool fits a query that has this share of the particular words of its purpose."""
_UNUSED: Final = 0.3
"""A query may have this share of values that no call uses: stories tell more than is asked."""
_MANY: Final = frozenset({"parallel", "parallel_multiple", "nested", "chained"})
_ASKED: Final[Mapping[str, frozenset[str]]] = {
    "who": frozenset({"pers", "lead", "pres", "winn", "auth", "inve", "hist", "memb", "owne"}),
    "when": frozenset({"date", "time", "even", "year"}),
    "start": frozenset({"even", "date"}),
    "where": frozenset({"loca", "plac", "addr", "find"}),
    "much": frozenset({"pric", "cost", "conv", "rate"}),
    "many": frozenset({"numb", "conv", "coun"}),
    "amoun": frozenset({"nutr", "quan", "coun"}),
}
"""Beginnings of what a question word or verb asks a tool for: `who` a leader, `when` a date."""
_GENERAL: Final = frozenset(
    word[:5]
    for word in (
        *LOOKUP,
        *COMPUTE,
        *listed("the,and,for,are,was,its,new,you,our,all,one,two,not,can,any,how,has,who,use,set"),
        *listed(
            "information,details,data,specific,given,particular,certain,based,name,value,type,list,"
            "return,returns,using,from,with,that,about,user,this,which,into,their,your,available"
        ),
    )
)


@dataclass(frozen=True, slots=True)
class CallRefusal:
    """Which gate refused an item and why; `detail` is for people."""

    gate: Literal["proposal", "format", "execution", "semantic", "judge"]
    reason: Reason
    detail: str


def format_gate(item: CallItem) -> CallRefusal | None:
    """Names are offered, arguments fit the schemas and no others, the answer suits the style."""
    offered = {tool.name: tool for tool in item.tools}
    for place, call in enumerate(item.calls, 1):
        if call.name not in offered:
            return CallRefusal("format", "unknown_tool", call.name)
        tool = offered[call.name]
        if extra := sorted(set(call.arguments) - set(tool.properties)):
            return CallRefusal("format", "misfit", f"{call.name}: no parameter {extra[0]}")
        referring = {name: number for name, number, _ in call.references()}
        if late := [name for name, number in referring.items() if number >= place]:
            return CallRefusal("format", "bad_reference", f"{call.name}: {late[0]}")
        if why := _misfit(call, tool, set(referring)):
            return CallRefusal("format", "misfit", f"{call.name}: {why}")
    for place, call in enumerate(item.calls):
        if call in item.calls[:place]:
            return CallRefusal("format", "repeated_call", call.name)
    return _answer_of_style(item)


def semantic(item: CallItem) -> CallRefusal | None:
    """The query has every literal and every intent of the calls, and no other number.

    Rules, not a model: texts that are exchanged between two parameters pass, and so do numbers
    whose parameter the query does not name, or of several calls.
    """
    tools = {tool.name: tool for tool in item.tools}
    alone = len(item.calls) == 1 and item.style != "follow_up"
    for call in item.calls:
        schemas = tools[call.name].properties
        for name, value in call.arguments.items():
            told = f"{call.name}: {name}={value!r}"
            if not reference(value) and not says(item.query, name, schemas[name], value):
                return CallRefusal("semantic", "literal_absent", told)
            if alone and _is_of_another(item.query, name, value):
                return CallRefusal("semantic", "value_exchanged", told)
    for call in item.calls:
        if not _asks_for(item.query, tools[call.name]):
            return CallRefusal("semantic", "intent_absent", call.name)
    return _unused(item, tools) or _left_out(item) or _unfit(item)


def check_item(item: CallItem) -> CallRefusal | None:
    """The first refusal of the two gates that run nothing, in their order."""
    return format_gate(item) or semantic(item)


def _misfit(call: GoldCall, tool: CallTool, referring: set[str]) -> str | None:
    """Why the arguments that are no references do not fit the schema."""
    given = {name: value for name, value in call.arguments.items() if name not in referring}
    required = [name for name in tool.required if name not in referring]
    return violation(given, {**tool.parameters, "required": required})


def _answer_of_style(item: CallItem) -> CallRefusal | None:
    none = item.style in {"irrelevance", "missing"}
    count, many = len(item.calls), item.style in _MANY
    if count != 0 if none else count < 2 if many else count != 1:
        return CallRefusal("format", "answer_of_style", f"{item.style} with {count} calls")
    if (item.style in {"nested", "chained"}) != any(any(c.references()) for c in item.calls):
        return CallRefusal("format", "answer_of_style", f"references in {item.style}")
    if (item.style == "missing") != bool(item.ask):
        return CallRefusal("format", "wrong_ask", f"{item.style} asks for {list(item.ask)}")
    if not all(any(name in tool.required for tool in item.tools) for name in item.ask):
        return CallRefusal("format", "wrong_ask", "no offered tool requires what is asked for")
    return None


def _is_of_another(query: str, name: str, value: object) -> bool:
    """Whether the query says other numbers of the parameter, and never this one."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    said = named_numbers(query, name)
    return bool(said) and not any(
        abs(reading - value) <= 1e-9 * abs(value) for one in said for reading in one.readings
    )


def _unused(item: CallItem, tools: Mapping[str, CallTool]) -> CallRefusal | None:
    """Numbers and names of the last turn that no call uses and no called tool speaks of."""
    if not item.calls:
        return None
    used = list(_values(item))
    known = " ".join([*(text for text in used if isinstance(text, str)),
                      *(str(tools[call.name].document()) for call in item.calls)])  # fmt: skip
    numbers = [float(value) for value in used if isinstance(value, (int, float))]
    written = {one.text.replace(",", "") for one in numbers_in(known)}
    turn = item.query.rpartition("\nUser:")[2]
    said = [one for one in numbers_in(turn) if one.text != "1"]
    unused = []
    for one in said:
        if not any(abs(reading - x) <= 1e-9 * abs(x) for reading in one.readings for x in numbers):
            parts = {one.text.replace(",", ""), *one.text.split(",")}
            if not parts & written and one.text not in known:
                unused.append(one.text)
    names, spoken = names_in(turn), plain(known)
    unused += [name for name in names if not any(word in spoken for word in plain(name).split())]
    if len(unused) > _UNUSED * (len(said) + len(names)):
        return CallRefusal("semantic", "value_unused", ", ".join(unused[:4]))
    return None


def _left_out(item: CallItem) -> CallRefusal | None:
    """A tool that fits the query as a whole, and is not called though others are."""
    if not item.calls:
        return None
    called = {call.name for call in item.calls}
    for tool in item.tools:
        if tool.name not in called and len(_particular(tool)) > 1 and _fit(item.query, tool) == 1.0:
            return CallRefusal("semantic", "tool_left_out", tool.name)
    return None


def _values(item: CallItem) -> Iterator[object]:
    """All single values in the arguments."""
    stack: list[object] = [value for call in item.calls for value in call.arguments.values()]
    while stack:
        match stack.pop():
            case dict() as inner:
                stack += inner.values()
            case list() | tuple() as inner:
                stack += inner
            case value:
                yield value


def _unfit(item: CallItem) -> CallRefusal | None:
    if item.style == "irrelevance":
        for tool in item.tools:
            if _fit(item.query, tool) >= _FITS:
                return CallRefusal("semantic", "tool_fits", tool.name)
    for name in item.ask:
        label = re.escape(words_of(name))
        if re.search(rf"(?i)(?<!\w){label}\b(?: is| should be|:| =|=| of) ?\S", item.query):
            return CallRefusal("semantic", "value_given", name)
    return None


def _asks_for(query: str, tool: CallTool) -> bool:
    """Whether the query has a particular word of the tool's name, purpose or parameters."""
    names = " ".join(words_of(name) for name in (tool.name, *tool.properties))
    wanted = stems(f"{names} {tool.description}", least=3) - _GENERAL
    words = stems(query, least=3)
    said = {stem[:4] for stem in words}.union(*(_ASKED[one] for one in words if one in _ASKED))
    return not wanted or any(stem[:4] in said for stem in wanted)


def _fit(query: str, tool: CallTool) -> float:
    """The share, 0 to 1, of the particular words of the tool's purpose in the query."""
    wanted = {stem[:4] for stem in _particular(tool)}
    said = {stem[:4] for stem in stems(query)}
    return len(wanted & said) / len(wanted) if wanted else 0.0


def _particular(tool: CallTool) -> set[str]:
    """Beginnings of the words of the purpose that neither every tool nor a parameter has."""
    named = {stem for name in tool.properties for stem in stems(words_of(name))}
    return (stems(intent(tool)) - _GENERAL - named) or (stems(intent(tool)) - _GENERAL)
