"""What a repetition of a run came to, compared with its record."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from weft.cli.text import amount, clean, one_line
from weft.workflow.runs.replay import Replay

_MOST = 20


def print_replay(console: Console, run: str, found: Replay) -> None:
    """`identical`, or everything that differs."""
    nodes = amount(found.identical, "node")
    if found.ok:
        unsaid = f"; {amount(len(found.open), 'node')} had not ended" if found.open else ""
        console.print(f"identical: {nodes}{unsaid}", style="bold green")
        return
    what = "comes out differently" if found.differences else "asks otherwise"
    line = Text(f"{clean(run)} {what}", "bold red").append(f"; {nodes} the same")
    console.print(line, soft_wrap=True)
    for drift in found.drifts[:_MOST]:
        line = Text("asked otherwise  ", "yellow").append(clean(str(drift)), "default")
        console.print(line, soft_wrap=True)
    for difference in found.differences[:_MOST]:
        console.print(Text(f"{difference.what} {clean(difference.name)}", "bold"))
        console.print(Text(f"  - {one_line(difference.then, 300)}", "red"), soft_wrap=True)
        console.print(Text(f"  + {one_line(difference.now, 300)}", "green"), soft_wrap=True)
    for what, number in (("drift", len(found.drifts)), ("difference", len(found.differences))):
        if number > _MOST:
            console.print(f"… and {amount(number - _MOST, what)} more; --json has them all")


def replay_data(run: str, found: Replay) -> dict[str, object]:
    """The repetition as the JSON document has it."""
    return {
        "run": run,
        "ok": found.ok,
        "identical": found.identical,
        "open": list(found.open),
        "drifts": [
            {
                "node": drift.node,
                "attempt": drift.attempt,
                "call": drift.call,
                "changes": list(drift.changes),
            }
            for drift in found.drifts
        ],
        "differences": [
            {"what": each.what, "name": each.name, "then": each.then, "now": each.now}
            for each in found.differences
        ],
    }
