"""Calls that must not be repeated (done, not done, or unknown), and how to resume the run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from weft.cli.console import print_more, table
from weft.cli.journal import run_reference
from weft.cli.text import amount, clean, listing, one_line, plain
from weft.core.calls import ToolCalled
from weft.core.errors import StoreError
from weft.core.ids import NodeId, RunId, matches, pattern_of
from weft.core.ports.journal import Journal
from weft.durability.calls import OnceCall, once_calls
from weft.engine.scheduler.effects import UnsettledEffect, word_for
from weft.workflow.history.run_history import RunHistory, read_history
from weft.workflow.history.unsettled_calls import refused_nodes, unsettled_calls

if TYPE_CHECKING:
    from rich.console import Console


_STYLES = {"done": "green", "not done": "yellow", "unknown": "bold red"}
_MOST_ROWS = 200


def print_effects(console: Console, history: RunHistory, run: str) -> None:
    """Print the calls of `once` tools with their effects; nothing without any.

    Calls that a person must decide about come first, and all of them are shown. `run`: as
    `run_reference` names it.
    """
    calls = sorted(once_calls(history.calls), key=lambda call: call.done != "unknown")
    unknown = [call for call in calls if call.done == "unknown"]
    if calls:
        print_calls(console, calls, max(_MOST_ROWS, len(unknown)))
    if unknown and history.ended is not None and history.ended.status == "succeeded":
        console.print("the run has succeeded without them: nothing more is asked of you")
    elif unknown:
        _ask(console, unknown, run, history.losses.unsure)
    _print_refused(console, history)
    if calls:
        console.print()


def print_calls(console: Console, calls: Sequence[OnceCall], most: int = _MOST_ROWS) -> None:
    """Print a table of calls, at most `most`."""
    from rich.text import Text

    shown = table("!once", "!node", "~called with", "its effect")
    for call in calls[:most]:
        shown.add_row(
            clean(call.tool),
            Text(clean(call.node)),
            Text(one_line(json.dumps(plain(call.arguments), ensure_ascii=False), 200), "dim"),
            Text(call.done, _STYLES[call.done]),
        )
    console.print(shown)
    print_more(console, len(calls), most, "calls; --json has them all")


def effect_data(call: OnceCall) -> dict[str, object]:
    """A call as JSON data."""
    about = ("node", "attempt", "tool", "arguments", "done", "failure", "at_s")
    return {key: plain(getattr(call, key)) for key in about}


def unsettled_data(
    history: RunHistory | None, ended: Sequence[UnsettledEffect]
) -> list[dict[str, object]]:
    """The calls that a person must decide about, as JSON data.

    Those in the record, if any, and others from `ended`, which the run ended with.
    """
    unsettled: list[dict[str, object]] = []
    for call in () if history is None else unsettled_calls(history.records):
        made = call.called.record
        assert isinstance(made, ToolCalled)
        about = {"tool": made.tool, "arguments": plain(made.arguments)}
        unsettled.append({"node": made.node, **about, "end": "done" if call.lost else "unknown"})
    nodes = {each["node"] for each in unsettled}
    for effect in ended:
        if effect.node not in nodes:
            about = {"tool": effect.tool, "arguments": None}
            unsettled.append({"node": effect.node, **about, "end": effect.end})
    return unsettled


def _ask(console: Console, unknown: Sequence[OnceCall], run: str, unsure: bool) -> None:
    node = unknown[0].node
    done, repeat = clean(word_for(node, "done:JSON")), clean(word_for(node, "repeat"))
    advice = f"find out, then: weft resume {run} --confirm {done} (what it returned), or {repeat}"
    console.print(advice, soft_wrap=True)
    pattern = pattern_of(node)
    alike = [call for call in unknown if matches(pattern, call.node)]
    if len(alike) > 1 and not unsure:
        word = clean(word_for(pattern, "done:JSON"))
        console.print(f"all {len(alike)} at once: --confirm {word}", soft_wrap=True)


def _print_refused(console: Console, history: RunHistory) -> None:
    """Print which nodes made no call because the record has lost some."""
    nodes = refused_nodes(history)
    if not nodes:
        return
    names = clean(listing([word_for(node, "...") for node in nodes], _MOST_ROWS))
    count = amount(len(nodes), "node")
    console.print(
        f"the record has lost calls, and nobody knows which were begun: {count} made no call "
        f"now. Find out, and say of each by name: --confirm {names}",
        soft_wrap=True,
    )


def print_once_calls(console: Console, journal: Journal, run: RunId, place: str | None) -> None:
    """Print the calls of `once` tools with their effects. Raises: `StoreError`.

    `place`: the value of `--journal`.
    """
    print_effects(console, read_history(journal, run), run_reference(run, place))


def unsettled_calls_data(
    journal: Journal | None, run: RunId | None, ended: Sequence[UnsettledEffect]
) -> list[dict[str, object]]:
    """The calls that a person must decide about, as JSON data.

    `ended`: those that the run ended with. An unreadable record contributes none.
    """
    history = None
    if journal is not None and run is not None:
        with suppress(StoreError):
            history = read_history(journal, run)
    return unsettled_data(history, ended)


def print_resume_hint(
    console: Console, run: RunId, asking: Sequence[NodeId], place: str | None, why: str
) -> None:
    """Print how to resume a run, and `why` it was left. `place`: the value of `--journal`."""
    name = run_reference(run, place)
    for node in asking:
        console.print(f"answer: weft answer {name} {clean(node)} VALUE", soft_wrap=True)
    console.print(f"{why}: resume it with `weft resume {name}`", style="bold", soft_wrap=True)
