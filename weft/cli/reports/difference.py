"""Reports of differences: between two runs, and between a workflow and its recorded version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from rich.console import Console
from rich.text import Text

from weft.cli.console import print_more, table
from weft.cli.reports.show import STYLES
from weft.cli.text import amount, clean, duration, money, plain
from weft.core.events import SUBSTITUTES
from weft.engine.scheduler.effects import word_for
from weft.workflow.history.compare import Comparison, NodePair, NodeSummary, RunTotals
from weft.workflow.history.workflow_diff import NodeChange, WorkflowDiff

_MOST_ROWS = 200
_MOST_LINES = 60
_MOST_STEPS = 12
_LINE_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_difference(console: Console, comparison: Comparison, *, everything: bool) -> None:
    """Print what differs; with `everything` equal nodes too."""
    _wholes(console, comparison)
    differ = [pair for pair in comparison.nodes if everything or not pair.same]
    if differ:
        _nodes(console, differ)
    same = sum(pair.same for pair in comparison.nodes)
    console.print(f"{amount(same, 'node')} of {len(comparison.nodes):,} came to the same")
    console.print()
    _texts(console, "input", comparison.inputs)
    _texts(console, "output", comparison.outputs)
    for whole in (comparison.left, comparison.right):
        _path(console, whole)


def difference_data(comparison: Comparison) -> dict[str, object]:
    """The comparison as JSON data."""
    return {
        "same": comparison.same,
        "left": _whole_data(comparison.left),
        "right": _whole_data(comparison.right),
        "nodes": [
            {
                "node": pair.node,
                "same": pair.same,
                "left": plain(pair.left) if pair.left.status else None,
                "right": plain(pair.right) if pair.right.status else None,
            }
            for pair in comparison.nodes
        ],
        "inputs": {name: list(lines) for name, lines in comparison.inputs.items()},
        "outputs": {name: list(lines) for name, lines in comparison.outputs.items()},
    }


def _wholes(console: Console, comparison: Comparison) -> None:
    shown = table("~")
    left, right = comparison.left, comparison.right
    for whole in (left, right):
        shown.add_column(clean(whole.run), overflow="fold", justify="right")
    shown.add_row("flow", clean(left.flow), clean(right.flow))
    shown.add_row("status", _status(left.status), _status(right.status))
    shown.add_row("wall time", duration(left.wall_s), _times(left, right))
    shown.add_row("tokens", f"{left.tokens:,}", f"{right.tokens:,}")
    shown.add_row("requests", f"{left.requests:,}", f"{right.requests:,}")
    if left.money or right.money:
        shown.add_row("money", money(left.money), money(right.money))
    console.print(shown)
    console.print()


def _nodes(console: Console, pairs: Sequence[NodePair]) -> None:
    shown = table("!node", "outcome", "", ">time", ">", ">tokens", ">", "value")
    for pair in pairs[:_MOST_ROWS]:
        left, right = pair.left, pair.right
        value = "same" if pair.same else "differs"
        shown.add_row(
            clean(pair.node),
            *(_ending(left), _ending(right)),
            *(_seconds(left), _seconds(right)),
            *(_tokens(left), _tokens(right)),
            Text(value if left.status and right.status else "", "dim" if pair.same else "yellow"),
        )
    console.print(shown)
    print_more(console, len(pairs), _MOST_ROWS, "nodes; --json has them all")
    console.print()


def _texts(console: Console, what: str, texts: Mapping[str, Iterable[str]]) -> None:
    for name, lines in texts.items():
        console.print(f"{what} {clean(name)}", style="bold underline")
        shown = list(lines)
        for line in shown[:_MOST_LINES]:
            console.print(Text(clean(line), _LINE_STYLES.get(line[:1], "")), soft_wrap=True)
        print_more(console, len(shown), _MOST_LINES, "lines; --json has them all")
        console.print()


def _path(console: Console, whole: RunTotals) -> None:
    steps = [f"{clean(node)} {duration(seconds)}" for node, seconds in whole.path[:_MOST_STEPS]]
    more = " → …" if len(whole.path) > _MOST_STEPS else ""
    line = Text(f"critical path of {clean(whole.run)}  ", "dim")
    console.print(line.append(" → ".join(steps) + more, "default"), soft_wrap=True)


def _status(status: str) -> Text:
    return Text(status or "not there", STYLES.get(status, "dim"))


def _ending(side: NodeSummary) -> Text:
    text = _status(side.status)
    if side.via:
        text.append(f" ({side.via})", "yellow" if side.via in SUBSTITUTES else "dim")
    return text


def _times(left: RunTotals, right: RunTotals) -> str:
    text = duration(right.wall_s)
    if not left.wall_s or "unfinished" in (left.status, right.status):
        return text  # there is nothing to compare yet
    return f"{text} ({right.wall_s / left.wall_s:.2f}x)"


def _seconds(side: NodeSummary) -> str:
    return "" if side.seconds is None else duration(side.seconds)


def _tokens(side: NodeSummary) -> str:
    return f"{side.tokens:,}" if side.tokens else ""


def _whole_data(whole: RunTotals) -> dict[str, object]:
    data = {field.name: getattr(whole, field.name) for field in fields(whole)}
    path = [{"node": node, "seconds": seconds} for node, seconds in data.pop("path")]
    return {**data, "critical_path": path}


_STYLES = {"unchanged": "dim", "changed": "yellow", "new": "green", "gone": "red"}


def print_changes(console: Console, changes: WorkflowDiff) -> None:
    """Print the files, lines and nodes that differ, and what happens to finished nodes."""
    for path, verdict in changes.files.items():
        console.print(Text(f"{verdict} ", _STYLES[verdict]).append(clean(path)), soft_wrap=True)
    print_lines(console, changes.lines[:_MOST_LINES])
    print_more(console, len(changes.lines), _MOST_LINES, "lines")
    console.print()
    if not changes.nodes:
        console.print("the recorded workflow cannot be read without its program: nodes unknown")
        return
    shown = table("!node", "now", "~finished work")
    for node in changes.nodes:
        shown.add_row(clean(node.node), Text(node.verdict, _STYLES[node.verdict]), _fate(node))
    if changes.outputs:
        shown.add_row(Text("(outputs)", "dim"), Text("changed", _STYLES["changed"]), "")
    console.print(shown)
    for node in changes.nodes:
        if node.may_act_twice:
            console.print(Text(_twice(node), "bold red"), soft_wrap=True)
    console.print()


def print_lines(console: Console, lines: Iterable[str]) -> None:
    """Print the lines of a unified diff, in colours."""
    for line in lines:
        console.print(Text(clean(line), _LINE_STYLES.get(line[:1], "dim")), soft_wrap=True)


def _twice(node: NodeChange) -> str:
    """The warning about calls that would be repeated if their inputs have changed."""
    made = f"{clean(node.node)}: {amount(node.acted, 'call')} made that must not be repeated"
    if node.verdict == "gone":
        return f"{made}; the same call of another node would act twice, and needs --confirm there"
    done, repeat = (clean(word_for(node.pattern, said)) for said in ("done", "repeat"))
    said = f"--confirm {done} keeps what was done, {repeat} calls again"
    return f"{made}; with other inputs it would act twice: {said}"


def _fate(node: NodeChange) -> Text:
    if not node.finished:
        return Text("")
    style = {"kept": "green", "runs again": "yellow", "dropped": "red"}.get(node.fate, "")
    return Text(f"{amount(node.finished, 'end')}: {node.fate}", style)
