"""The verdict of the chaos, on ledgers and ends that are written here."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from pathlib import Path

import pytest

import weft
from evals.cluster import programs
from evals.cluster.chaos import Chaos, verdict

CHAOS = Chaos(programs=1, pure=2, booked=1, charged=1, kills=0, pause_s=1.0, limit_s=1.0)
DONE = ["succeeded", ""]


def judged(
    folder: Path,
    ledger: list[str],
    charge: list[str] = DONE,
    book: list[str] = DONE,
    squares: list[int] | None = None,
) -> dict[str, int]:
    (folder / "ledger").write_text("".join(f"{line}\n" for line in ledger), "ascii")
    told = {
        "status": "succeeded",
        "outputs": {"squares": [0, 1] if squares is None else squares},
        "outcomes": {"books/0/one": book, "charges/0/one": charge},
    }
    (folder / "0.json").write_text(json.dumps(told), "utf-8")
    return {key: count for key, count in verdict(folder, CHAOS).items() if count and key != "sound"}


def test_what_went_well_is_sound(tmp_path: Path) -> None:
    assert judged(tmp_path, ["book 0.0 k", "book 0.0 k", "charge 0.0 -"]) == {}


@pytest.mark.parametrize(
    ("ledger", "more", "found"),
    [
        (["book 0.0 k"], {}, {"lost": 1}),
        (["book 0.0 k", "charge 0.0 -", "charge 0.0 -"], {}, {"doubled": 1}),
        (["book 0.0 k", "book 0.0 other", "charge 0.0 -"], {}, {"doubled": 1}),
        (["book 0.0 k", "charge 0.0 -"], {"squares": [0]}, {"lost": 1}),
        (
            ["book 0.0 k", "charge 0.0 -"],
            {"charge": ["failed", "EffectUnknown"]},
            {"unknown_told": 1},
        ),
        (["book 0.0 k"], {"charge": ["failed", "EffectUnknown"]}, {"unknown_told": 1}),
        (["book 0.0 k", "charge 0.0 -"], {"charge": ["failed", "NotDone"]}, {"unknown_untold": 1}),
        (["book 0.0 k"], {"charge": ["failed", "NotDone"]}, {"failed": 1}),
        (["charge 0.0 -"], {"book": ["failed", "WorkerLost"]}, {"failed": 1}),
    ],
)
def test_what_went_wrong_is_counted(
    tmp_path: Path, ledger: list[str], more: dict[str, list[str]], found: dict[str, int]
) -> None:
    assert judged(tmp_path, ledger, **more) == found  # type: ignore[arg-type]


def test_a_program_without_an_end_is_counted(tmp_path: Path) -> None:
    assert verdict(tmp_path, CHAOS)["unended"] == 1


def test_a_program_that_was_killed_after_its_end_is_read_from_the_journal(tmp_path: Path) -> None:
    inputs = {
        "program": 0,
        "ledger": str(tmp_path / "ledger"),
        "pure": [0, 1],
        "booked": [0],
        "charged": [0],
    }
    flow = weft.load(programs.HERE / "chaos.yaml")

    async def end_twice(journal: object) -> None:
        for _ in range(2):
            result = await programs.ended(flow, "p0", inputs, journal, "local")
            programs.write(tmp_path / "0.json", result)
            assert {kind: count for kind, count in verdict(tmp_path, CHAOS).items() if count} == {
                "sound": 2
            }

    with closing(weft.open_journal(tmp_path / "journal.sqlite")) as journal:
        asyncio.run(end_twice(journal))
    assert len((tmp_path / "ledger").read_text("ascii").splitlines()) == 2
