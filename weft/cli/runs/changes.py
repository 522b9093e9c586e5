"""What has changed in a workflow since its run was recorded, as a table of nodes."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from weft.cli.text import amount, clean
from weft.engine.effects import word_for
from weft.workflow.runs.changed import Changes, NodeChange

_STYLES = {"unchanged": "dim", "changed": "yellow", "new": "green", "gone": "red"}
_MOST_LINES = 60
_LINE_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_changes(console: Console, changes: Changes) -> None:
    """The files, the lines and the nodes that differ, and what becomes of finished work."""
    for path, verdict in changes.files.items():
        console.print(Text(f"{verdict} ", _STYLES[verdict]).append(clean(path)), soft_wrap=True)
    for line in changes.lines[:_MOST_LINES]:
        console.print(Text(clean(line), _LINE_STYLES.get(line[:1], "dim")), soft_wrap=True)
    if len(changes.lines) > _MOST_LINES:
        console.print(f"… and {len(changes.lines) - _MOST_LINES:,} more lines")
    console.print()
    if not changes.nodes:
        console.print("the recorded workflow cannot be read without its program: nodes unknown")
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("node", no_wrap=True, overflow="fold")
    table.add_column("now", no_wrap=True)
    table.add_column("finished work")
    for node in changes.nodes:
        table.add_row(clean(node.node), Text(node.verdict, _STYLES[node.verdict]), _fate(node))
    if changes.outputs:
        table.add_row(Text("(outputs)", "dim"), Text("changed", _STYLES["changed"]), "")
    console.print(table)
    for node in changes.nodes:
        if node.may_act_twice:
            console.print(Text(_twice(node), "bold red"), soft_wrap=True)
    console.print()


def _twice(node: NodeChange) -> str:
    """What is said of calls that would act a second time if their inputs have changed."""
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
