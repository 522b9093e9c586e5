"""The programs in examples/queue, ports of the quick starts of Temporal and of Prefect."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.examples.test_examples import EXAMPLES
from tests.workflow.queue.test_worker import Machine
from weft.testing import FakeClock

TRANSFER, STARS = (EXAMPLES / "queue" / name for name in ("transfer.yaml", "stars.yaml"))


def balance(bank: Path) -> dict[str, int]:
    accounts: Counter[str] = Counter()
    for line in bank.read_text().splitlines():
        booked = json.loads(line)
        accounts[booked["account"]] += booked["amount"]
    return dict(accounts)


def transferred(tmp_path: Path, **inputs: Any) -> weft.FlowResult:
    """A transfer that a worker executes, in virtual time."""
    path, clock = tmp_path / "journal.sqlite", FakeClock()
    given = {"bank": str(tmp_path / "bank"), "amount": 250, **inputs}
    submitted = weft.load(TRANSFER).submit(given, key="transfer-1", journal=path)

    async def main() -> weft.FlowResult:
        async with Machine(path, clock, weft.load(TRANSFER)).works():
            return await submitted.result(clock=clock)

    return clock.run(main())


def test_money_arrives(tmp_path: Path) -> None:
    result = transferred(tmp_path)
    assert result.outputs == {"withdrawn": "85-150: -250", "arrived": "43-812: +250"}
    assert balance(tmp_path / "bank") == {"85-150": -250, "43-812": 250}


def test_money_arrives_after_outages(tmp_path: Path) -> None:
    (tmp_path / "bank.outages").write_text("xxx")
    assert transferred(tmp_path).ok
    assert balance(tmp_path / "bank") == {"85-150": -250, "43-812": 250}


def test_money_goes_back(tmp_path: Path) -> None:
    result = transferred(tmp_path, target="unknown")
    assert result.outputs["arrived"] == "85-150: +250"
    assert balance(tmp_path / "bank") == {"85-150": 0}


def test_nothing_is_moved_without_money(tmp_path: Path) -> None:
    assert transferred(tmp_path, amount=5000).status == "failed"
    assert not (tmp_path / "bank").exists()


def test_money_arrives_although_the_worker_dies(tmp_path: Path) -> None:
    """Its worker dies while the bank is down: the other one does not withdraw again."""
    path, clock = tmp_path / "journal.sqlite", FakeClock()
    (tmp_path / "bank.outages").write_text("xxx")
    given = {"bank": str(tmp_path / "bank"), "amount": 250}
    submitted = weft.load(TRANSFER).submit(given, journal=path)

    async def main() -> None:
        dying, other = (Machine(path, clock, weft.load(TRANSFER)) for _ in range(2))
        serving = asyncio.ensure_future(dying.worker.serve())
        while (tmp_path / "bank.outages").read_text() == "xxx":
            await clock.sleep(0.1)
        dying.journal.close()
        async with other.works():
            assert (await submitted.result(clock=clock)).ok
        with pytest.raises(weft.errors.StoreError):
            await serving

    clock.run(main())
    assert balance(tmp_path / "bank") == {"85-150": -250, "43-812": 250}


def test_stars_are_fetched_on_a_schedule(tmp_path: Path) -> None:
    pytest.importorskip("cronsim", reason="cronsim is not installed (extra `schedules`)")
    from weft.workflow.queue.scheduling import add_schedule

    path, clock, flow = tmp_path / "journal.sqlite", FakeClock(), weft.load(STARS)
    with closing(weft.open_journal(path)) as journal:
        now_s = clock.wall().timestamp()
        add_schedule(journal, "stars", "*/5 * * * *", flow.unit, {}, now_s=now_s)

    async def main() -> None:
        machine = Machine(path, clock, flow)
        async with machine.works():
            await clock.sleep(901)
        assert [kind for kind, _ in machine.told].count("ended") == 3

    clock.run(main())
    with closing(weft.open_journal(path)) as journal:
        assert {summary.standing for summary in journal.runs()} == {"succeeded"}
