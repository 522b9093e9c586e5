"""A recorded run again: replayed, compared with its record; or simulated under other conditions."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from weft.cli.console import table
from weft.cli.text import amount, clean, duration, money, one_line, plain
from weft.durability.simulate import Advice, Prediction
from weft.workflow.history.replay import RunReplay

_MOST = 20


def print_replay(console: Console, run: str, found: RunReplay) -> None:
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


def replay_data(run: str, found: RunReplay) -> dict[str, object]:
    """The repetition as the JSON document has it."""
    return {
        "run": run,
        "ok": found.ok,
        "identical": found.identical,
        "open": list(found.open),
        "drifts": plain(found.drifts),
        "differences": plain(found.differences),
    }


_REASONS = 3


def print_prediction(console: Console, found: Prediction) -> None:
    """Recorded and predicted, side by side."""
    low_s, high_s = found.spread_s
    shown = table("~", "~", header=False)
    cut = "" if found.ended else ", cut off there"
    shown.add_row("recorded", f"{duration(found.recorded_s)}{cut}")
    spread = (
        "" if len(found.runs) == 1 else f" (10 % to 90 %: {duration(low_s)}, {duration(high_s)})"
    )
    shown.add_row("predicted", f"{duration(found.wall_s)}{spread}")
    shown.add_row("", f"{found.speedup:.2f}x as fast")
    if found.tokens:
        shown.add_row("tokens", f"{found.tokens:,.0f}")
    if found.money:
        shown.add_row("cost", money(found.money))
    statuses = ", ".join(f"{count} {status}" for status, count in found.statuses.most_common())
    shown.add_row("runs", statuses)
    console.print(shown)
    reasons = dict.fromkeys(reason for run in found.runs for reason in run.reasons)
    for reason in list(reasons)[:_REASONS]:
        console.print(Text(f"  {clean(reason)}", "dim"))
    if not found.ended:
        console.print("the run had not come to its end: what was left of it is not in these times")
    for note in found.notes:
        console.print(f"note: {note}")


def print_advice(console: Console, advice: Sequence[Advice]) -> None:
    """The best changes, a line for each."""
    if not advice:
        console.print("nothing that was tried would save half a percent")
        return
    shown = table("~change", ">predicted", ">saves")
    for one in advice:
        shown.add_row(Text(clean(one.words)), duration(one.wall_s), f"{one.saves:.0%}")
    console.print(shown)


def prediction_data(found: Prediction, advice: Sequence[Advice] | None) -> dict[str, object]:
    """Everything, with each simulated run."""
    low_s, high_s = found.spread_s
    data: dict[str, object] = {
        "recorded_s": found.recorded_s,
        "ended": found.ended,
        "predicted_s": found.wall_s,
        "p10_s": low_s,
        "p90_s": high_s,
        "speedup": found.speedup,
        "tokens": found.tokens,
        "money_usd": found.money,
        "notes": list(found.notes),
        "statuses": dict(found.statuses),
        "runs": [
            {
                "seed": run.seed,
                "status": run.status,
                "wall_s": run.wall_s,
                "tokens": run.usage.tokens,
                "failed": list(run.failed),
            }
            for run in found.runs
        ],
    }
    if advice is not None:
        data["advice"] = [
            {"change": one.words, "predicted_s": one.wall_s, "saves": one.saves} for one in advice
        ]
    return data
