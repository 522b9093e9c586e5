"""The proposer `rules`: one item of each style, drawn from a catalogue. Checks nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.agents.calls.catalogue import CallTool
from weft.agents.calls.chat import small_talk
from weft.agents.calls.item import CallItem, GoldCall
from weft.agents.calls.kinds import kind_of, words_of
from weft.agents.calls.links import ResultLinks
from weft.agents.calls.phrases import write_value
from weft.agents.calls.purpose import LOOKUP, particular_word, purpose_of
from weft.agents.calls.values import ValueSource
from weft.agents.calls.variants import ToolVariant, as_is, vary
from weft.agents.calls.writing import arguments, write_query

OPTIONAL_SHARE: Final = 0.3
_TRIES: Final = 8


class ItemDraws:
    """What the styles draw from: tools by field, their variants, and values.

    `variants`: the share of tools, 0 to 1, that are shown under a drawn schema. `offered`: the most
    tools of an item.
    """

    def __init__(
        self, tools: Sequence[CallTool], offered: int, variants: float, rng: random.Random
    ) -> None:
        self.values = ValueSource(tools)
        self.tools = [tool for tool in tools if self._usable(tool)]
        self.rng, self._offered, self._variants = rng, offered, variants
        # Most catalogues look things up, mostly: other purposes get twice the weight.
        self._weights = [1.0 if purpose_of(t).verb in LOOKUP else 2.0 for t in self.tools]
        self._fields: dict[str, list[CallTool]] = {}
        for tool in self.tools:
            self._fields.setdefault(tool.field, []).append(tool)
        self.links = ResultLinks(self.tools)

    def tool(self) -> CallTool:
        """Any tool."""
        return self.rng.choices(self.tools, self._weights)[0]

    def shown(self, tool: CallTool) -> ToolVariant:
        """The tool as it is, or under another schema."""
        return vary(tool, self.rng) if self.rng.random() < self._variants else as_is(tool)

    def distractors(self, tool: CallTool, most: int | None = None) -> list[CallTool]:
        """One or more other tools, near (of the field) or far, without equal names."""
        count = self.rng.randint(1, max(1, min(most or self._offered - 1, len(self.tools) - 1)))
        near = [one for one in self._fields[tool.field] if one.name != tool.name]
        source = near if near and self.rng.random() < 0.6 else self.tools
        found = {one.name: one for one in self.rng.choices(source, k=count)}
        found.pop(tool.name, None)
        return list(found.values())

    def arguments(self, variant: ToolVariant) -> dict[str, Any]:
        """Values for the required parameters, and for a part of the others, in declared order."""
        tool, given = variant.tool, {}
        generous = self.rng.choice((0.0, OPTIONAL_SHARE, 2 * OPTIONAL_SHARE))
        for name in tool.properties:
            if name in tool.required or self.rng.random() < generous:
                value = self.value(variant, name)
                if value is not None:
                    given[name] = value
        return _in_order(given, tool)

    def value(self, variant: ToolVariant, name: str) -> Any:
        """A value for one parameter, or None."""
        return self.values.draw(*variant.sources[name], self.rng)

    def _usable(self, tool: CallTool) -> bool:
        rng = random.Random(0)  # noqa: S311 - not for secrets
        drawn = [self.values.draw(n, tool.properties.get(n, {}), rng) for n in tool.required]
        return bool(drawn) and None not in drawn


@dataclass(frozen=True, slots=True)
class _ItemDraft:
    """Variants called with their arguments, and the query."""

    calls: list[tuple[ToolVariant, dict[str, Any]]]
    query: str

    def item(
        self, style: str, why: str, others: Sequence[ToolVariant], rng: random.Random
    ) -> CallItem | None:
        """The item with all tools in a drawn order; None where two have one name."""
        shown = list({id(one): one.tool for one, _ in self.calls}.values())
        shown += [one.tool for one in others]
        if len({tool.name for tool in shown}) < len(shown):
            return None
        rng.shuffle(shown)
        calls = tuple(GoldCall(one.tool.name, given) for one, given in self.calls)
        return CallItem(self.query, tuple(shown), calls, style, why)


def simple(draws: ItemDraws) -> CallItem | None:
    """One tool, one call."""
    return _one_call(draws, "simple", [], "the one tool offered fits")


def multiple(draws: ItemDraws) -> CallItem | None:
    """Several tools, one call."""
    tool = draws.tool()
    return _one_call(
        draws, "multiple", draws.distractors(tool), "one of the tools offered fits", tool
    )


def parallel(draws: ItemDraws) -> CallItem | None:
    """Several calls of one tool."""
    rng, tool = draws.rng, draws.tool()
    variant = draws.shown(tool)
    first = draws.arguments(variant)
    free = [
        name
        for name in first
        if variant.tool.properties[name].get("type") != "boolean" or len(first) == 1
    ]
    if not free:
        return None
    varied = rng.sample(free, min(len(free), rng.choice((1, 1, 1, 2, 2, len(free)))))
    calls, count = [first], rng.choice((2, 2, 3, 3, 4))
    for _ in range(_TRIES):
        other = first | {name: draws.value(variant, name) for name in varied}
        if all(other[name] != one[name] for one in calls for name in varied):
            calls.append(other)
        if len(calls) == count:
            break
    if len(calls) < 2:
        return None
    others = draws.distractors(tool) if rng.random() < 0.25 else []
    query = write_query([(variant.tool, given) for given in calls], rng)
    answer = _ItemDraft([(variant, given) for given in calls], query)
    why = "one tool is called for each request"
    return answer.item("parallel", why, [draws.shown(one) for one in others], rng)


def parallel_multiple(draws: ItemDraws) -> CallItem | None:
    """Several calls of different tools, some tools called twice."""
    rng, first = draws.rng, draws.tool()
    more = draws.distractors(first, 2)
    variants = [draws.shown(one) for one in (first, *more)]
    calls = [(one, draws.arguments(one)) for one in variants]
    if rng.random() < 0.25:
        again = rng.choice(variants)
        calls.append((again, draws.arguments(again)))
    query = write_query([(one.tool, given) for one, given in calls], rng)
    names = {first.name, *(one.name for one in more)}
    others = [one for one in draws.distractors(first, 2) if one.name not in names]
    if rng.random() < 0.4:
        others = []
    why = "each request has a tool of its own"
    return _ItemDraft(calls, query).item(
        "parallel_multiple", why, [draws.shown(one) for one in others], rng
    )


def irrelevance(draws: ItemDraws) -> CallItem | None:
    """No offered tool fits: the one that does is left out, or none was needed."""
    rng, tool = draws.rng, draws.tool()
    others = draws.distractors(tool, rng.choice((1, 1, 1, 2, 3)))
    if not others:
        return None
    draw = rng.random()
    why = "the tool that the query asks for is not offered"
    if draw < 0.35:
        about = particular_word(others[0] if draw < 0.12 else tool, rng)
        query = small_talk(rng, about if draw < 0.2 else "")
        why = "the query needs none of the tools offered"
    elif draw < 0.5:
        query = write_query([(tool, {})], rng)
    else:
        variant = draws.shown(tool)
        query = write_query([(variant.tool, draws.arguments(variant))], rng)
    return _ItemDraft([], query).item("irrelevance", why, [draws.shown(o) for o in others], rng)


def missing(draws: ItemDraws) -> CallItem | None:
    """A required parameter is not said."""
    rng, tool = draws.rng, draws.tool()
    variant = draws.shown(tool)
    given = draws.arguments(variant)
    asked = rng.choice(variant.tool.required)
    given.pop(asked)
    query = write_query([(variant.tool, given)], rng)
    others = draws.distractors(tool) if rng.random() < 0.3 else []
    shown = [variant.tool, *(draws.shown(one).tool for one in others)]
    if len({one.name for one in shown}) < len(shown):
        return None
    rng.shuffle(shown)
    why = f"the query does not say {asked}, which the tool requires"
    return CallItem(query, tuple(shown), (), "missing", why, (asked,))


def follow_up(draws: ItemDraws) -> CallItem | None:
    """A dialogue: a missing value is asked for and given, or a second request changes the first."""
    rng, tool = draws.rng, draws.tool()
    variant = draws.shown(tool)
    given = draws.arguments(variant)
    name = rng.choice(variant.tool.required)
    schema = variant.tool.properties[name]
    if schema.get("type") in {"boolean", "object", "array"}:
        return None
    if rng.random() < 0.5:
        first = write_query(
            [(variant.tool, {key: value for key, value in given.items() if key != name})], rng
        )
        said = write_value(name, schema, given[name], rng)
        asked = _ask(name, rng)
        second = rng.choice(("{}", "{}.", "It's {}.", "{}, please.", "Take {}.")).format(said)
        why = f"{name} was asked for and given"
    else:
        first = write_query([(variant.tool, given)], rng)
        other = draws.value(variant, name)
        if other == given[name]:
            return None
        given = given | {name: other}
        said = write_value(name, schema, given[name], rng)
        asked = rng.choice(
            ("Done.", "Here is the result.", "I have done that.", "Sure, there it is.")
        )
        again = arguments(variant.tool, {name: given[name]}, {name: said}, rng)
        second = rng.choice(("And {}?", "Now the same {}.", "What about {}?", "Do it again {}."))
        second = second.format(said if second.startswith("What about") else again)
        why = f"the second request changes {name} of the first"
    query = f"User: {first}\nAssistant: {asked}\nUser: {second[0].upper()}{second[1:]}"
    others = draws.distractors(tool) if rng.random() < 0.4 else []
    answer = _ItemDraft([(variant, given)], query)
    return answer.item("follow_up", why, [draws.shown(one) for one in others], rng)


def _in_order(given: dict[str, Any], tool: CallTool) -> dict[str, Any]:
    """With the earlier of two dates as the start, and the smaller of two numbers as the least."""
    ends = {
        "start": [n for n in given if kind_of(n, tool.properties[n]) == "start"],
        "end": [n for n in given if kind_of(n, tool.properties[n]) == "end"],
        "min": [n for n in given if n.lower().startswith("min")],
        "max": [n for n in given if n.lower().startswith("max")],
    }
    for low, high in (("start", "end"), ("min", "max")):
        if len(ends[low]) == len(ends[high]) == 1:
            one, other = ends[low][0], ends[high][0]
            if type(given[one]) is type(given[other]) and given[one] > given[other]:
                given[one], given[other] = given[other], given[one]
    return given


def _one_call(
    draws: ItemDraws,
    style: str,
    others: Sequence[CallTool],
    why: str,
    tool: CallTool | None = None,
) -> CallItem | None:
    variant = draws.shown(tool or draws.tool())
    given = draws.arguments(variant)
    answer = _ItemDraft([(variant, given)], write_query([(variant.tool, given)], draws.rng))
    if style == "multiple" and not others:
        return None
    return answer.item(style, why, [draws.shown(one) for one in others], draws.rng)


def _ask(name: str, rng: random.Random) -> str:
    form = rng.choice(
        ("Which {n}?", "What is the {n}?", "Could you tell me the {n}?", "For which {n}?")
    )
    return form.format(n=words_of(name))


Proposer = Callable[[ItemDraws], CallItem | None]
PROPOSERS: Final[Mapping[str, Proposer]] = {
    "simple": simple,
    "multiple": multiple,
    "parallel": parallel,
    "parallel_multiple": parallel_multiple,
    "irrelevance": irrelevance,
    "missing": missing,
    "follow_up": follow_up,
}
