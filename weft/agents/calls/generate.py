"""The proposer `rules`: draws calls, writes queries from them, and keeps what passes the gates.

Plain Python, not a workflow: one item takes less time than the engine takes for a node.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.agents.calls.catalogue import CallTool
from weft.agents.calls.gates import CallRefusal, check_item
from weft.agents.calls.item import STYLES, CallItem, GoldCall
from weft.agents.calls.values import draw_value
from weft.agents.calls.writing import write_query
from weft.core.errors import InputError

_TRIES: Final = 20
_DUPLICATE: Final = "duplicate"


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """`styles`: weights by style; `per_skeleton`: most items that differ in their values only."""

    n: int
    styles: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(STYLES, 1.0))
    seed: int = 0
    offered: int = 4
    per_skeleton: int = 2


def generate(
    tools: Sequence[CallTool], options: GenerateOptions
) -> Iterator[tuple[CallItem, CallRefusal | str | None]]:
    """Proposed items, each with its refusal, `"duplicate"`, or None where it was accepted.

    Ends after `n` accepted ones. The same tools and options give the same items.

    Raises: `InputError` for unknown styles, fewer than two usable tools, or where the tools
        give no more items.
    """
    usable = [tool for tool in tools if _usable(tool)]
    _check(options, usable)
    rng = random.Random(f"calls-{options.seed}")  # noqa: S311 - not for secrets
    fields: dict[str, list[CallTool]] = {}
    for tool in usable:
        fields.setdefault(tool.field, []).append(tool)
    names, weights = list(options.styles), list(options.styles.values())
    seen: Counter[object] = Counter()
    accepted = 0
    for _ in range(options.n * _TRIES):
        if accepted == options.n:
            return
        style = rng.choices(names, weights)[0]
        item = _propose(style, usable, fields, options.offered, rng)
        if item is None:
            continue
        refusal: CallRefusal | str | None = check_item(item)
        if refusal is None and seen[item.skeleton()] >= options.per_skeleton:
            refusal = _DUPLICATE
        if refusal is None:
            seen[item.skeleton()] += 1
            accepted += 1
        yield item, refusal
    if accepted < options.n:
        raise InputError(
            f"these tools gave {accepted} of {options.n} items",
            hint="give more tools, or ask for fewer items",
        )


def _check(options: GenerateOptions, usable: Sequence[CallTool]) -> None:
    if unknown := sorted(set(options.styles) - set(STYLES)):
        raise InputError(f"unknown style {unknown[0]!r}", hint=f"styles: {', '.join(STYLES)}")
    if not all(0 <= x < float("inf") for x in options.styles.values()) or not any(
        options.styles.values()
    ):
        raise InputError("weights of styles must be at least 0, and one above", hint="simple=1")
    if len(usable) < 2:
        raise InputError("fewer than two tools have required parameters of simple types")


def _usable(tool: CallTool) -> bool:
    rng = random.Random(0)  # noqa: S311 - not for secrets
    values = [draw_value(name, tool.properties.get(name, {}), rng) for name in tool.required]
    return bool(values) and None not in values


def _propose(
    style: str,
    tools: Sequence[CallTool],
    fields: Mapping[str, Sequence[CallTool]],
    offered: int,
    rng: random.Random,
) -> CallItem | None:
    tool = rng.choice(tools)
    near = [one for one in fields[tool.field] if one.name != tool.name]
    others = rng.sample(near, min(offered - 1, len(near)))
    called, shown = [tool], [tool, *others]
    if style in {"simple", "parallel", "missing"}:
        shown = [tool]
    if style == "parallel":
        called = [tool] * rng.randint(2, 3)
    if style == "parallel_multiple":
        called = [tool, *others[:1]]
    if style == "irrelevance":
        shown = others
    if (style != "simple" and not shown) or (style == "multiple" and not others):
        return None
    rng.shuffle(shown)
    drawn = [(one, _arguments(one, rng)) for one in called]
    ask: tuple[str, ...] = ()
    if style == "missing":
        ask = (rng.choice(tool.required),)
        drawn = [(tool, {k: v for k, v in drawn[0][1].items() if k not in ask})]
    calls = (
        () if style in {"irrelevance", "missing"} else tuple(GoldCall(t.name, a) for t, a in drawn)
    )
    return CallItem(write_query(drawn, rng), tuple(shown), calls, style, _why(style, ask), ask)


def _arguments(tool: CallTool, rng: random.Random) -> dict[str, Any]:
    given = {}
    for name, schema in tool.properties.items():
        if name in tool.required or rng.random() < 0.3:
            value = draw_value(name, schema, rng)
            if value is not None:
                given[name] = value
    return given


def _why(style: str, ask: tuple[str, ...]) -> str:
    if ask:
        return f"the query does not say {ask[0]}, which the tool requires"
    return {
        "simple": "the one tool offered fits",
        "multiple": "one of the tools offered fits",
        "parallel": "one tool is called for each request",
        "parallel_multiple": "each request has a tool of its own",
        "irrelevance": "the tool that the query asks for is not offered",
    }[style]
