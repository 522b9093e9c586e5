"""Two runs side by side, as tables and as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from weft.cli.runs.listing import STYLES
from weft.cli.text import amount, clean, duration, money
from weft.core.events import SUBSTITUTES
from weft.core.ids import NodeId
from weft.workflow.runs.compare import Comparison, NodePair, Side, Whole

_MOST_ROWS = 200
_MOST_LINES = 60
_MOST_STEPS = 12
_LINE_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_difference(console: Console, found: Comparison, *, everything: bool) -> None:
    """What differs; with `everything` the nodes that came to the same, too."""
    _wholes(console, found)
    differ = [pair for pair in found.nodes if everything or not pair.same]
    if differ:
        _nodes(console, differ)
    same = sum(pair.same for pair in found.nodes)
    console.print(f"{amount(same, 'node')} of {len(found.nodes):,} came to the same")
    console.print()
    _texts(console, "input", found.inputs)
    _texts(console, "output", found.outputs)
    for whole in (found.left, found.right):
        _path(console, whole)


def difference_data(found: Comparison) -> dict[str, object]:
    """The comparison as the JSON document has it."""
    return {
        "same": found.same,
        "left": _whole_data(found.left),
        "right": _whole_data(found.right),
        "nodes": [
            {
                "node": pair.node,
                "same": pair.same,
                "left": _side_data(pair.left),
                "right": _side_data(pair.right),
            }
            for pair in found.nodes
        ],
        "inputs": {name: list(lines) for name, lines in found.inputs.items()},
        "outputs": {name: list(lines) for name, lines in found.outputs.items()},
    }


def _wholes(console: Console, found: Comparison) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("")
    left, right = found.left, found.right
    for whole in (left, right):
        table.add_column(clean(whole.run), overflow="fold", justify="right")
    table.add_row("flow", clean(left.flow), clean(right.flow))
    table.add_row("status", _status(left.status), _status(right.status))
    table.add_row("wall time", duration(left.wall_s), _times(left, right))
    table.add_row("tokens", f"{left.tokens:,}", f"{right.tokens:,}")
    table.add_row("requests", f"{left.requests:,}", f"{right.requests:,}")
    if left.money or right.money:
        table.add_row("money", money(left.money), money(right.money))
    console.print(table)
    console.print()


def _nodes(console: Console, pairs: Sequence[NodePair]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("node", no_wrap=True, overflow="fold")
    for name in ("outcome", "time", "tokens"):
        table.add_column(name, no_wrap=True, justify="left" if name == "outcome" else "right")
        table.add_column("", no_wrap=True, justify="left" if name == "outcome" else "right")
    table.add_column("value", no_wrap=True)
    for pair in pairs[:_MOST_ROWS]:
        left, right = pair.left, pair.right
        value = "same" if pair.same else "differs"
        table.add_row(
            clean(pair.node),
            *(_ending(left), _ending(right)),
            *(_seconds(left), _seconds(right)),
            *(_tokens(left), _tokens(right)),
            Text(value if left.status and right.status else "", "dim" if pair.same else "yellow"),
        )
    console.print(table)
    if len(pairs) > _MOST_ROWS:
        console.print(f"… and {len(pairs) - _MOST_ROWS:,} more nodes; --json has them all")
    console.print()


def _texts(console: Console, what: str, found: Mapping[str, Iterable[str]]) -> None:
    for name, lines in found.items():
        console.print(f"{what} {clean(name)}", style="bold underline")
        told = list(lines)
        for line in told[:_MOST_LINES]:
            console.print(Text(clean(line), _LINE_STYLES.get(line[:1], "")), soft_wrap=True)
        if len(told) > _MOST_LINES:
            console.print(f"… and {len(told) - _MOST_LINES:,} more lines; --json has them all")
        console.print()


def _path(console: Console, whole: Whole) -> None:
    steps = [f"{clean(node)} {duration(seconds)}" for node, seconds in whole.path[:_MOST_STEPS]]
    more = " → …" if len(whole.path) > _MOST_STEPS else ""
    line = Text(f"critical path of {clean(whole.run)}  ", "dim")
    console.print(line.append(" → ".join(steps) + more, "default"), soft_wrap=True)


def _status(status: str) -> Text:
    return Text(status or "not there", STYLES.get(status, "dim"))


def _ending(side: Side) -> Text:
    told = _status(side.status)
    if side.via:
        told.append(f" ({side.via})", "yellow" if side.via in SUBSTITUTES else "dim")
    return told


def _times(left: Whole, right: Whole) -> str:
    told = duration(right.wall_s)
    if not left.wall_s or "unfinished" in (left.status, right.status):
        return told  # there is nothing to compare yet
    return f"{told} ({right.wall_s / left.wall_s:.2f}x)"


def _seconds(side: Side) -> str:
    return "" if side.seconds is None else duration(side.seconds)


def _tokens(side: Side) -> str:
    return f"{side.tokens:,}" if side.tokens else ""


def _side_data(side: Side) -> dict[str, object] | None:
    if not side.status:
        return None
    return {
        "status": side.status,
        "via": side.via,
        "seconds": side.seconds,
        "tokens": side.tokens,
        "attempts": side.attempts,
    }


def _whole_data(whole: Whole) -> dict[str, object]:
    return {
        "run": whole.run,
        "flow": whole.flow,
        "status": whole.status,
        "wall_s": whole.wall_s,
        "tokens": whole.tokens,
        "requests": whole.requests,
        "money": whole.money,
        "critical_path": [_step(node, seconds) for node, seconds in whole.path],
    }


def _step(node: NodeId, seconds: float) -> dict[str, object]:
    return {"node": node, "seconds": seconds}
