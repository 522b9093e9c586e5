"""200 bad items of ten kinds: which gate catches which. Each gate sees each item by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from evals.engine.rows import Lookup, Row
from evals.generate_calls import declared
from evals.reasoning.report import Target
from weft.agents.calls import CallItem, GoldCall, execution, format_gate, semantic
from weft.agents.calls.phrases import plain_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EACH: Final = 20
GATES: Final = ("format", "execution", "semantic")
_NOISE: Final = "Zorblatt"
Spoil = Callable[[CallItem], CallItem | None]


def rows(quick: bool) -> list[dict[str, Any]]:
    """The share of each kind that each gate refuses, and of good items."""
    found = []
    for kind, bad in planted(EACH // 4 if quick else EACH).items():
        found += _rows(kind, bad, *_bad_tools(kind, bad))
    good = declared.items(EACH if quick else 10 * EACH, seed=3)
    return found + _rows("good_items", good)


def planted(each: int) -> Mapping[str, list[CallItem]]:
    """`each` bad items of every kind, spoilt from accepted ones, the same each time."""
    found = {}
    for kind, (styles, spoil) in KINDS.items():
        source = iter(declared.items(12 * each, styles, seed=len(kind)))
        found[kind] = list(_spoilt(source, spoil, each))
    return found


def table(found: Sequence[Row]) -> str:
    """Kinds as lines, gates as columns, in per cent."""
    figures = Lookup(found)
    lines = [f"{'kind':20}{''.join(f'{gate:>12}' for gate in (*GATES, 'any'))}"]
    for case in dict.fromkeys(row.case for row in found):
        shares = [figures(case, gate, "refused") or 0.0 for gate in (*GATES, "any")]
        lines.append(f"{case:20}{''.join(f'{share:12.0%}' for share in shares)}")
    return "\n".join(lines)


def panel(axes: Axes, figures: Lookup) -> None:
    """The share of each kind that any gate refuses."""
    kinds = [*KINDS, "good_items"]
    left = [0.0] * len(kinds)
    for gate in GATES:
        first = [(figures(kind, gate, "refused_first") or 0.0) * 100 for kind in kinds]
        axes.barh(kinds, first, left=left, label=gate)
        left = [one + other for one, other in zip(left, first, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("refused (%), by the first gate that does")
    axes.legend(frameon=False)


def _rows(
    case: str,
    items: Sequence[CallItem],
    raising: frozenset[str] = frozenset(),
    empty: frozenset[str] = frozenset(),
) -> list[dict[str, Any]]:
    runner = declared.toolbox(raising=raising, empty=empty)
    refused: dict[str, list[bool]] = {gate: [] for gate in GATES}
    for item in items:
        formal = format_gate(item)
        refused["format"].append(formal is not None)
        # A call that does not fit cannot be made; of unknown tools no value can be read.
        refused["execution"].append(asyncio.run(execution(item, runner)) is not None)
        known = all(call.name in {tool.name for tool in item.tools} for call in item.calls)
        refused["semantic"].append(known and semantic(item) is not None)
    rows = [Row(case, gate, "refused", _share(refused[gate]), "share") for gate in GATES]
    already = [False] * len(items)
    for gate in GATES:
        first = [now and not was for now, was in zip(refused[gate], already, strict=True)]
        rows.append(Row(case, gate, "refused_first", _share(first), "share"))
        already = [now or was for now, was in zip(refused[gate], already, strict=True)]
    rows.append(Row(case, "any", "refused", _share(already), "share"))
    rows.append(Row(case, "any", "items", len(items), "items"))
    return [
        {name: getattr(row, name) for name in ("case", "system", "metric", "value", "unit")}
        for row in rows
    ]


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags)


def _bad_tools(kind: str, items: Sequence[CallItem]) -> tuple[frozenset[str], frozenset[str]]:
    """The tools that raise, and that return nothing."""
    named = frozenset(call.name for item in items for call in item.calls)
    return (
        named if kind == "raising_call" else frozenset(),
        named if kind == "empty_result" else frozenset(),
    )


def _spoilt(source: Iterator[CallItem], spoil: Spoil, each: int) -> Iterator[CallItem]:
    count = 0
    for item in source:
        if count < each and (bad := spoil(item)) is not None:
            count += 1
            yield bad


def _unknown_tool(item: CallItem) -> CallItem:
    call = item.calls[0]
    return replace(item, calls=(replace(call, name=f"{call.name}_v2"), *item.calls[1:]))


def _wrong_type(item: CallItem) -> CallItem | None:
    return _changed(item, lambda value: plain_number(value) if _is_number(value) else None)


def _wrong_literal(item: CallItem) -> CallItem | None:
    """Another value of the same type, which the query does not say."""
    tool = next(tool for tool in item.tools if tool.name == item.calls[0].name)
    free = {name for name, schema in tool.properties.items() if "enum" not in schema}

    def other(value: Any) -> Any:
        if _is_number(value):
            return value + 7_919
        return f"{_NOISE} {len(value)}" if isinstance(value, str) else None

    return _changed(item, other, free)


def _raises(item: CallItem) -> CallItem:
    return item


def _missing_intent(item: CallItem) -> CallItem | None:
    """The query keeps its values but says nothing of what is to be done."""
    said = [v for call in item.calls for v in call.arguments.values()]
    if any(isinstance(value, (bool, list, dict)) for value in said):
        return None
    return replace(item, query=", ".join(map(str, said)))


def _extra_call(item: CallItem) -> CallItem | None:
    """A call of another tool, which nobody asked for."""
    other = next(iter(declared.items(1, ("simple",), len(item.query))))
    if other.tools[0].name in {tool.name for tool in item.tools}:
        return None
    style = "parallel_multiple"
    return replace(
        item, tools=(*item.tools, *other.tools), calls=(*item.calls, *other.calls), style=style
    )


def _lost_call(item: CallItem) -> CallItem | None:
    """Without the last call, though the query asks for it."""
    style = item.style if len(item.calls) > 2 else "multiple"
    return replace(item, calls=item.calls[:-1], style=style)


def _fitting_tool(item: CallItem) -> CallItem:
    """Said to be irrelevant, though the tool that fits is offered."""
    return replace(item, calls=(), style="irrelevance")


def _exchanged_values(item: CallItem) -> CallItem | None:
    call = item.calls[0]
    names = [name for name, value in call.arguments.items() if _is_number(value)]
    if len(names) < 2 or call.arguments[names[0]] == call.arguments[names[1]]:
        return None
    one, other = names[:2]
    given = dict(call.arguments) | {one: call.arguments[other], other: call.arguments[one]}
    return replace(item, calls=(GoldCall(call.name, given), *item.calls[1:]))


def _changed(
    item: CallItem, change: Callable[[Any], Any], names: set[str] | None = None
) -> CallItem | None:
    """The item with the first argument that `change` knows another value for."""
    call = item.calls[0]
    for name, value in call.arguments.items():
        other = change(value) if names is None or name in names else None
        if other is not None:
            given = dict(call.arguments) | {name: other}
            return replace(item, calls=(GoldCall(call.name, given), *item.calls[1:]))
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_ONE: Final = ("simple", "multiple")
KINDS: Final[Mapping[str, tuple[Sequence[str], Spoil]]] = {
    "unknown_tool": (_ONE, _unknown_tool),
    "wrong_type": (_ONE, _wrong_type),
    "raising_call": (_ONE, _raises),
    "empty_result": (_ONE, _raises),
    "missing_intent": (_ONE, _missing_intent),
    "extra_call": (_ONE, _extra_call),
    "lost_call": (("parallel", "parallel_multiple"), _lost_call),
    "wrong_literal": (_ONE, _wrong_literal),
    "fitting_tool": (_ONE, _fitting_tool),
    "exchanged_values": (_ONE, _exchanged_values),
}
TARGETS: Final = (
    *(Target(kind, "any", "refused", 0.9) for kind in KINDS if kind != "lost_call"),
    Target("good_items", "any", "refused", 0.0, at_most=True),
)
