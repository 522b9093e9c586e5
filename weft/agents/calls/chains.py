"""Items whose calls use results of earlier ones: `nested` (two calls) and `chained` (more)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.agents.calls.catalogue import CallTool
from weft.agents.calls.item import CallItem, GoldCall
from weft.agents.calls.links import PLAIN, gives
from weft.agents.calls.styles import ItemDraws
from weft.agents.calls.variants import ToolVariant
from weft.agents.calls.writing import Clause, clause, sentence

_JOINS: Final = ("{}, then {}", "{} and then {}", "{}. Then {}", "{}, and {}", "{}. With it, {}")


def nested(draws: ItemDraws) -> CallItem | None:
    """Two calls; the second uses the result of the first."""
    return _linked(draws, "nested", 2)


def chained(draws: ItemDraws) -> CallItem | None:
    """Three or four calls; each from the second on uses the result of one before it."""
    return _linked(draws, "chained", draws.rng.choice((3, 3, 4)))


@dataclasses.dataclass(frozen=True, slots=True)
class _Step:
    """A call; `path` is where in its result stands what its tool gives."""

    origin: CallTool
    variant: ToolVariant
    path: str
    given: Mapping[str, Any]
    clause: Clause


def _linked(draws: ItemDraws, style: str, length: int) -> CallItem | None:
    givers = draws.links.givers
    if not givers:
        return None
    origin = draws.rng.choice(givers)
    variant, path = _showing(draws, origin)
    given = draws.arguments(variant)
    steps = [
        _Step(origin, variant, path, given, clause(variant.tool, given, draws.rng, alone=False))
    ]
    while len(steps) < length:
        following = _next(draws, steps, last=len(steps) == length - 1)
        if following is None:
            return None
        steps.append(following)
    return _item(draws, style, steps)


def _next(draws: ItemDraws, steps: Sequence[_Step], *, last: bool) -> _Step | None:
    """A call that takes the result of one of `steps`."""
    rng, links = draws.rng, draws.links
    used = {step.origin.name for step in steps}
    free = [
        (place, taker, name)
        for place, step in enumerate(steps)
        for taker, name in links.takers(step.origin)
        if taker.name not in used
    ]
    onward = free if last else [one for one in free if links.takers(one[1])] or free
    if not onward:
        return None
    place, taker, name = rng.choice(onward)
    variant, path = _showing(draws, taker)
    label = next(key for key, (origin, _) in variant.sources.items() if origin == name)
    if variant.tool.properties[label].get("type") not in PLAIN:
        return None
    noun = gives(steps[place].origin)
    given = draws.arguments(variant) | {label: f"${place + 1}{steps[place].path}"}
    said = rng.choice((f"that {noun}", f"the {noun}", f"this {noun}"))
    text = clause(variant.tool, given, rng, alone=False, texts={label: said})
    return _Step(taker, variant, path, given, text)


def _item(draws: ItemDraws, style: str, steps: Sequence[_Step]) -> CallItem | None:
    rng, text = draws.rng, steps[0].clause.text
    for step in steps[1:]:
        text = rng.choice(_JOINS).format(text, step.clause.text)
    query = sentence(dataclasses.replace(steps[0].clause, text=text), rng)
    shown = [step.variant.tool for step in steps]
    if rng.random() < 0.5:
        shown += [draws.shown(one).tool for one in draws.distractors(steps[0].origin, 2)]
    if len({tool.name for tool in shown}) < len(shown):
        return None
    rng.shuffle(shown)
    calls = tuple(GoldCall(step.variant.tool.name, step.given) for step in steps)
    return CallItem(query, tuple(shown), calls, style, "later calls use results of earlier ones")


def _showing(draws: ItemDraws, tool: CallTool) -> tuple[ToolVariant, str]:
    """The tool with a description of its result, and the path to what it gives."""
    variant, noun = draws.shown(tool), gives(tool)
    if noun is None:
        return variant, ""
    field = noun.replace(" ", "_")
    told, path = f"Returns the {noun}.", ""
    if draws.rng.random() < 0.5:
        told, path = f"Returns an object with the field '{field}'.", f".{field}"
    text = f"{variant.tool.description.rstrip('. ')}. {told}"
    shown = dataclasses.replace(variant.tool, description=text)
    return dataclasses.replace(variant, tool=shown), path
