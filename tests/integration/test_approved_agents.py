"""No tool that needs approval is called without a recorded yes, however often agents are killed."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.durability.journal.lock_timeouts import PATIENCE_S
from tests.integration.crash.approved import (
    JOURNAL,
    MOMENTS,
    SMALL,
    Death,
    End,
    Entry,
    Part,
    entries,
    lines,
)
from tests.integration.crash.killed import forked, status_of

_TOGETHER = 10
_KILLS = 6
_MOST_PARTS = 16
Yes = tuple[int, str, dict[str, Any]]
"""A recorded yes: its number in the record, the tool, and the arguments that it is for."""


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.durability.journal.sqlite.tables.BUSY_S", PATIENCE_S)


def killed_agents(folder: Path, seeds: range) -> Counter[str]:
    """Run `_TOGETHER` agents a seed, kill their processes, resume them; counts of what happened."""
    counts: Counter[str] = Counter()
    warm = folder / "warm"  # what is imported here need not be in every process
    warm.mkdir()
    Part(warm, [f"run-warm-{number:02}" for number in range(_TOGETHER)], 0).carry_out()
    for seed in seeds:
        there = folder / f"{seed}"
        there.mkdir()
        counts += _until_all_ended(there, seed)
        counts += checked(there)
    return counts


def _until_all_ended(folder: Path, seed: int) -> Counter[str]:
    draw = random.Random(seed)
    counts: Counter[str] = Counter()
    runs = [f"run-{seed:04}-{number:02}" for number in range(_TOGETHER)]
    kills = draw.randint(3, _KILLS)
    for number in range(_MOST_PARTS):
        past = ends(folder)
        left = [run for run in runs if not (run in past and past[run].is_final)]
        if not left:
            break
        death = _drawn(draw) if number < kills else Death()
        later = 0.25 if number < kills else 0.0
        part = Part(folder, left, 100 * seed + number, death, later, past)
        status = status_of(forked(part.carry_out))
        if os.WIFSIGNALED(status):
            counts["kills"] += 1
            ended = sum(1 for run in left if ends(folder).get(run) is not past.get(run))
            counts["runs killed"] += len(left) - ended
        else:
            assert os.WEXITSTATUS(status) == 0, f"seed {seed}, part {number} in {folder}"
    last = ends(folder)
    for run in runs:
        assert run in last, f"{run} in {folder} has not ended"
        assert last[run].is_final, f"{run} in {folder} is left {last[run]}"
        counts[last[run].status] += 1
        counts["runs"] += 1
    return counts


def _drawn(draw: random.Random) -> Death:
    """How a process dies: at a moment of its own, or after so many seconds."""
    if draw.random() < 0.3:
        return Death(delay_s=draw.random() * 0.4)
    moment = draw.choice(MOMENTS)
    most = 80 if moment.startswith("append") else 8
    return Death(moment, draw.randint(1, most))


def ends(folder: Path) -> dict[str, End]:
    """How the latest part of each run ended, of those that were not killed."""
    return {line[0]: End(*line) for line in lines(folder / "ends")}


def checked(folder: Path) -> Counter[str]:
    """Assert that a recorded yes precedes each call that needs one; counts of both."""
    journal = weft.open_journal(folder / JOURNAL)
    calls: dict[str, list[Entry]] = defaultdict(list)
    counts: Counter[str] = Counter()
    for entry in entries(folder):
        calls[entry.run].append(entry)
    try:
        for summary in journal.runs():
            records = [(seq, record) for seq, _, record in journal.records(summary.run)]
            approved = list(_approvals(records, counts))
            for entry in calls.pop(summary.run, []):
                counts["calls"] += 1
                if entry.tool == "transfer" or entry.arguments["amount"] > SMALL:
                    counts["approved calls"] += 1
                    _assert_approved(entry, approved)
            _assert_once(entries(folder), summary.run, approved)
    finally:
        journal.close()
    assert not calls, "calls of runs that no journal knows"
    return counts


def _approvals(records: list[tuple[int, Any]], counts: Counter[str]) -> Iterator[Yes]:
    asked: dict[str, Any] = {}
    for seq, record in records:
        kind = type(record).__name__
        if kind == "HumanAsked" and record.tool and not record.recalled:
            counts["questions"] += record.node not in asked
            asked[record.node] = record
        elif kind == "HumanAnswered" and record.node in asked and not record.recalled:
            question, value = asked[record.node], record.value
            said = value if isinstance(value, Mapping) else {"approve": value}
            word = "yes" if said["approve"] is True else "no"
            counts["changed" if "arguments" in said else word] += 1
            if said["approve"] is True:
                yield seq, question.tool, dict(said.get("arguments", question.arguments))


def _assert_approved(entry: Entry, approved: list[Yes]) -> None:
    yes = [seq for seq, *what in approved if what == [entry.tool, entry.arguments]]
    assert yes, f"{entry} has no recorded yes"
    assert min(yes) <= entry.records, f"{entry} was called before its yes was recorded"


def _assert_once(ledger: list[Entry], run: str, approved: list[Yes]) -> None:
    """At most one call a yes of what must not be repeated; of the others, one key a yes."""
    for entry in (entry for entry in ledger if entry.run == run):
        equal = [e for e in ledger if (e.run, e.tool, e.arguments) == (run, *_what(entry))]
        yes = sum(1 for _, *what in approved if what == [*_what(entry)])
        needs = entry.tool == "transfer" or entry.arguments["amount"] > SMALL
        made = len(equal) if entry.effect == "once" else len({each.key for each in equal})
        if needs:
            assert made <= yes, f"{entry}: {made} calls by {yes} approvals"
        if entry.effect == "idempotent":
            assert entry.key, f"{entry} has no key"


def _what(entry: Entry) -> tuple[str, dict[str, Any]]:
    return entry.tool, entry.arguments


def assert_telling(counts: Counter[str]) -> None:
    """The runs met what they are about."""
    runs = counts["runs"]
    assert counts["succeeded"] >= 0.5 * runs, counts
    assert counts["kills"] >= 0.1 * runs, counts
    assert counts["runs killed"] >= 0.5 * runs, counts
    for what in ("questions", "calls", "approved calls"):
        assert counts[what] >= runs, counts
    for what in ("yes", "no", "changed"):
        assert counts[what] >= 0.1 * runs, counts


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_thirty_killed_agents_call_nothing_without_a_recorded_yes(tmp_path: Path) -> None:
    assert_telling(killed_agents(tmp_path, range(3)))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_a_thousand_killed_agents_call_nothing_without_a_recorded_yes(tmp_path: Path) -> None:
    counts = killed_agents(tmp_path, range(100, 200))
    print(dict(counts))
    assert counts["runs"] == 1000
    assert_telling(counts)
