"""Reports of a replay, compared with its record, and of a simulation."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from weft.cli.console import table
from weft.cli.text import amount, clean, duration, money, one_line, plain
from weft.durability.simulate import Advice, Prediction
from weft.workflow.history.replay import RunReplay

_MOST = 20


def print_replay(console: Console, run: str, replay: RunReplay) -> None:
    """Print `identical`, or everything that differs."""
    nodes = amount(replay.identical, "node")
    if replay.ok:
        unsaid = f"; {amount(len(replay.open), 'node')} had not ended" if replay.open else ""
        console.print(f"identical: {nodes}{unsaid}", style="bold green")
        return
    what = "comes out differently" if replay.differences else "asks otherwise"
    line = Text(f"{clean(run)} {what}", "bold red").append(f"; {nodes} the same")
    console.print(line, soft_wrap=True)
    for drift in replay.drifts[:_MOST]:
        line = Text("asked otherwise  ", "yellow").append(clean(str(drift)), "default")
        console.print(line, soft_wrap=True)
    for difference in replay.differences[:_MOST]:
        console.print(Text(f"{difference.what} {clean(difference.name)}", "bold"))
        console.print(Text(f"  - {one_line(difference.then, 300)}", "red"), soft_wrap=True)
        console.print(Text(f"  + {one_line(difference.now, 300)}", "green"), soft_wrap=True)
    for what, number in (("drift", len(replay.drifts)), ("difference", len(replay.differences))):
        if number > _MOST:
            console.print(f"… and {amount(number - _MOST, what)} more; --json has them all")


def replay_data(run: str, replay: RunReplay) -> dict[str, object]:
    """The replay as JSON data."""
    return {
        "run": run,
        "ok": replay.ok,
        "identical": replay.identical,
        "open": list(replay.open),
        "drifts": plain(replay.drifts),
        "differences": plain(replay.differences),
    }


_REASONS = 3


def print_prediction(console: Console, prediction: Prediction) -> None:
    """Print recorded and predicted figures."""
    low_s, high_s = prediction.spread_s
    shown = table("~", "~", header=False)
    cut = "" if prediction.ended else ", cut off there"
    shown.add_row("recorded", f"{duration(prediction.recorded_s)}{cut}")
    spread = (
        f" (10 % to 90 %: {duration(low_s)}, {duration(high_s)})"
        if len(prediction.runs) > 1
        else ""
    )
    shown.add_row("predicted", f"{duration(prediction.wall_s)}{spread}")
    shown.add_row("", f"{prediction.speedup:.2f}x as fast")
    if prediction.tokens:
        shown.add_row("tokens", f"{prediction.tokens:,.0f}")
    if prediction.money:
        shown.add_row("cost", money(prediction.money))
    statuses = ", ".join(f"{count} {status}" for status, count in prediction.statuses.most_common())
    shown.add_row("runs", statuses)
    console.print(shown)
    reasons = dict.fromkeys(reason for run in prediction.runs for reason in run.reasons)
    for reason in list(reasons)[:_REASONS]:
        console.print(Text(f"  {clean(reason)}", "dim"))
    if not prediction.ended:
        console.print("the run had not come to its end: what was left of it is not in these times")
    for note in prediction.notes:
        console.print(f"note: {note}")


def print_advice(console: Console, advice: Sequence[Advice]) -> None:
    """Print the best changes, a line for each."""
    if not advice:
        console.print("nothing that was tried would save half a percent")
        return
    shown = table("~change", ">predicted", ">saves")
    for one in advice:
        shown.add_row(Text(clean(one.words)), duration(one.wall_s), f"{one.saves:.0%}")
    console.print(shown)


def prediction_data(prediction: Prediction, advice: Sequence[Advice] | None) -> dict[str, object]:
    """The prediction as JSON data, with each simulated run."""
    low_s, high_s = prediction.spread_s
    data: dict[str, object] = {
        "recorded_s": prediction.recorded_s,
        "ended": prediction.ended,
        "predicted_s": prediction.wall_s,
        "p10_s": low_s,
        "p90_s": high_s,
        "speedup": prediction.speedup,
        "tokens": prediction.tokens,
        "money_usd": prediction.money,
        "notes": list(prediction.notes),
        "statuses": dict(prediction.statuses),
        "runs": [
            {
                "seed": run.seed,
                "status": run.status,
                "wall_s": run.wall_s,
                "tokens": run.usage.tokens,
                "failed": list(run.failed),
            }
            for run in prediction.runs
        ],
    }
    if advice is not None:
        data["advice"] = [
            {"change": one.words, "predicted_s": one.wall_s, "saves": one.saves} for one in advice
        ]
    return data
