"""Schedules: their times, their zones, what was missed, and one firing for all workers."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from tests.workflow.queue.test_worker import TEXT, Machine
from weft.core.ports.queue import RunSchedule, queue_of
from weft.errors import InputError
from weft.testing import FakeClock
from weft.workflow.queue.declared import apply_schedules
from weft.workflow.queue.schedules import CATCH_UPS, due_firing, next_time, run_of_tick
from weft.workflow.queue.scheduling import add_schedule

pytest.importorskip("cronsim", reason="cronsim is not installed (extra `schedules`)")


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        ("0 3 * * *", "UTC", "2026-01-05T03:00", "2026-01-06T03:00"),
        ("0 3 * * *", "Europe/Berlin", "2026-01-05T02:59", "2026-01-05T03:00"),
        ("*/15 * * * *", "UTC", "2026-01-05T03:01", "2026-01-05T03:15"),
        ("0 9 * * MON-FRI", "UTC", "2026-01-02T10:00", "2026-01-05T09:00"),
        ("0 0 L * *", "UTC", "2026-02-01T00:00", "2026-02-28T00:00"),
        # Clocks go forward at 02:00: what is skipped fires at once after it.
        ("30 2 * * *", "Europe/Berlin", "2026-03-29T00:00", "2026-03-29T03:00"),
    ],
)
def test_the_next_time(cron: str, zone: str, after: str, expected: str) -> None:
    assert next_time(cron, zone, at(after, zone)) == at(expected, zone)


def test_a_time_that_occurs_twice_fires_once() -> None:
    first = next_time("30 2 * * *", "Europe/Berlin", at("2026-10-25T00:00", "Europe/Berlin"))
    second = next_time("30 2 * * *", "Europe/Berlin", first)
    assert second - first > 20 * 3600


@pytest.mark.parametrize(
    ("cron", "zone"),
    [
        ("nonsense", "UTC"),
        ("61 * * * *", "UTC"),
        ("* * * *", "UTC"),
        ("0 0 30 2 *", "UTC"),
        ("0 3 * * *", "Mars/Base"),
        ("0 3 * * *", "../etc/passwd"),
    ],
)
def test_wrong_expressions_are_refused(cron: str, zone: str) -> None:
    with pytest.raises(InputError):
        next_time(cron, zone, 0.0)


def schedule(catch_up: Any, next_s: float) -> RunSchedule:
    from tests.conformance.queue import TERMS, header

    return RunSchedule("hourly", "0 * * * *", "UTC", catch_up, next_s, header(""), TERMS)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(CATCH_UPS), st.integers(0, 20), st.integers(0, 3599))
def test_every_missed_time_is_settled(catch_up: Any, hours: int, more_s: int) -> None:
    start_s = at("2026-01-05T00:00")
    now_s = start_s + hours * 3600 + more_s
    one, fired = schedule(catch_up, start_s), list[float]()
    while (firing := due_firing(one, now_s)) is not None:
        assert firing.next_s > one.next_s
        fired += [] if firing.tick_s is None else [firing.tick_s]
        one = schedule(catch_up, firing.next_s)
    assert one.next_s == start_s + (hours + 1) * 3600
    last_s = start_s + hours * 3600
    expected = {
        "all": [start_s + hour * 3600 for hour in range(hours + 1)],
        "one": [last_s],
        "skip": [last_s] if more_s <= 60 else [],
    }
    assert fired == expected[catch_up]


def test_a_schedule_is_not_due_before_its_time() -> None:
    assert due_firing(schedule("one", 100.0), 99.9) is None


def test_workers_fire_each_time_once(tmp_path: Path) -> None:
    path, clock, flow = tmp_path / "journal.sqlite", FakeClock(), weft.loads(TEXT)
    with closing(weft.open_journal(path)) as journal:
        now_s = clock.wall().timestamp()
        added = add_schedule(journal, "tick", "*/2 * * * *", flow.unit, {"n": 1}, now_s=now_s)
    assert added.next_s == now_s + 120

    async def main() -> None:
        machines = [Machine(path, clock, flow) for _ in range(3)]
        async with machines[0].works(), machines[1].works(), machines[2].works():
            await clock.sleep(605)
        fired = [run for machine in machines for kind, run in machine.told if kind == "fired"]
        ended = [run for machine in machines for kind, run in machine.told if kind == "ended"]
        ticks = [run_of_tick("tick", now_s + 120 * tick) for tick in range(1, 6)]
        assert sorted(fired) == sorted(ended) == ticks
        assert ticks[0] == "tick-20000101T000200Z"

    clock.run(main())


def test_a_worker_that_was_away_catches_up(tmp_path: Path) -> None:
    path, clock, flow = tmp_path / "journal.sqlite", FakeClock(), weft.loads(TEXT)
    now_s = clock.wall().timestamp()
    with closing(weft.open_journal(path)) as journal:
        for how in CATCH_UPS:
            terms: Any = {"catch_up": how, "now_s": now_s}
            add_schedule(journal, how, "0 * * * *", flow.unit, {"n": 1}, **terms)
    clock.advance(5 * 3600 + 1800)

    async def main() -> None:
        machine = Machine(path, clock, flow)
        async with machine.works():
            await clock.sleep(60)
        fired = sorted(run.partition("-")[0] for kind, run in machine.told if kind == "fired")
        assert fired == ["all"] * 5 + ["one"]

    clock.run(main())


def test_a_schedule_pins_the_version(tmp_path: Path) -> None:
    path, clock = tmp_path / "journal.sqlite", FakeClock()
    old, new = weft.loads(TEXT), weft.loads(TEXT.replace("* 2", "* 3"))
    with closing(weft.open_journal(path)) as journal:
        now_s = clock.wall().timestamp()
        add_schedule(journal, "tick", "*/2 * * * *", old.unit, {"n": 1}, now_s=now_s)

    async def main() -> None:
        machine = Machine(path, clock, new)
        async with machine.works():
            await clock.sleep(125)
            entries = queue_of(machine.journal).entries()
        assert [(entry.run, entry.state) for entry in entries] == [
            ("tick-20000101T000200Z", "queued")
        ]

    clock.run(main())
    with closing(weft.open_journal(path)) as journal, pytest.raises(InputError):
        add_schedule(journal, "two words", "0 * * * *", old.unit, {"n": 1}, now_s=0.0)


@given(st.lists(st.sets(st.sampled_from("abc")), min_size=1, max_size=4))
@settings(max_examples=15, deadline=None)
def test_the_journal_has_what_the_file_declares(versions: list[set[str]]) -> None:
    """Whatever was applied before; times that were due stay so."""
    with (
        TemporaryDirectory() as folder,
        closing(weft.open_journal(f"{folder}/j.sqlite")) as journal,
    ):
        plain = weft.loads(TEXT)
        add_schedule(journal, "mine", "0 * * * *", plain.unit, {"n": 1}, now_s=0.0)
        began: dict[str, float] = {}
        for now_s, names in enumerate(versions, 1):
            declared = [{"name": n, "cron": "0 * * * *", "inputs": {"n": 1}} for n in sorted(names)]
            unit = weft.loads(f"schedule: {json.dumps(declared)}\n{TEXT}").unit
            apply_schedules(journal, [unit], now_s * 10_000.0)
            again = apply_schedules(journal, [unit], now_s * 10_000.0 + 5_000.0)
            assert [one.change for one in again] == ["unchanged"] * len(names)
            began = {n: began.get(n, next_time("0 * * * *", "UTC", now_s * 1e4)) for n in names}
            found = {one.name: one.next_s for one in queue_of(journal).schedules()}
            assert found == {**began, "mine": 3600.0}


def test_a_worker_without_the_package_says_so(tmp_path: Path, monkeypatch: Any) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "cronsim", None)
    with pytest.raises(InputError, match="cronsim is missing"):
        next_time("* * * * *", "UTC", 0.0)
