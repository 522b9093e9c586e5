"""Journals of killed runs that are damaged in many ways, then resumed: what came of it."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import weft
from weft.core.errors import WeftError
from weft.core.ids import RunId
from weft.core.ports.journal import Journal, Record
from weft.core.values import ToolSpec
from weft.durability.journal.sqlite import SqliteJournal
from weft.engine.runner.recorder import Durability
from weft.testing import FakeTools

RUN = RunId("charges")
NAME = "journal.sqlite"
CHARGES = 12
_FLOW = f"""\
name: charges
tools:
  charge: ./tools.py:charge
nodes:
  plan: {{value: {list(range(CHARGES))}}}
  all:
    {{map: "{{{{ plan }}}}", as: i, width: 3, do: {{tool: charge, with: {{key: "{{{{ i }}}}"}}}}}}
  last: {{tool: charge, with: {{key: "last {{{{ all }}}}"}}}}
outputs:
  done: "{{{{ last }}}}"
"""


@dataclass(frozen=True, slots=True)
class Killed:
    """What a process left that was killed: the files in `folder`, and which charges it had made."""

    folder: Path
    ledger: Mapping[str, int]
    records: Sequence[Record]


class _Tools(FakeTools):
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(replace(spec, effect="once") for spec in super().specs())


@dataclass(frozen=True, slots=True)
class Resumed:
    """A damaged run, resumed or refused. `told`: what was said of it; `lost`: records missing."""

    kind: str
    told: tuple[str, ...]
    lost: bool
    refused: bool
    ledger: Mapping[str, int]


def killed_runs(folder: Path, seed: int) -> list[Killed]:
    """One run, as it was left after some of its charges, and what a second part of it left."""
    draw = random.Random(seed)
    durability: Durability = draw.choice(("sync", "sync", "async", "exit"))
    first = _part(folder / f"first-{seed}", {}, draw, durability)
    shutil.copytree(first[1].folder, folder / f"second-{seed}")
    return first + _part(folder / f"second-{seed}", first[1].ledger, draw, durability)


def _part(
    live: Path, made: Mapping[str, int], draw: random.Random, durability: Durability
) -> list[Killed]:
    """A part of the run in the folder `live`, to its end; what it was at some of its charges."""
    left: list[Killed] = []
    ledger = Counter(made)
    more = range(ledger.total() + 1, CHARGES)
    moments = draw.sample(more, min(4, len(more)))
    live.mkdir(exist_ok=True)

    def charge(key: str) -> str:
        ledger[key] += 1
        if ledger.total() in moments:
            left.append(_left(live, live.with_name(f"{live.name}-{len(left)}"), ledger))
        return f"paid {key}"

    with closing(_journal(live, pages=draw.choice((8, 40, 1000)))) as journal:
        if made:
            _go_on(journal, charge)
        else:
            tools = _Tools(charge=charge)
            flow = weft.loads(_FLOW, str(Path(__file__).with_name("charges.yaml")))
            run = flow.start({}, tools=tools, journal=journal, run=RUN, durability=durability)
            asyncio.run(run.wait())
    return left


def _journal(folder: Path, pages: int = 1000) -> SqliteJournal:
    journal = SqliteJournal(folder / NAME)
    journal._db.execute(f"PRAGMA wal_autocheckpoint = {pages}")
    return journal


def _left(live: Path, folder: Path, ledger: Mapping[str, int]) -> Killed:
    shutil.copytree(live, folder, ignore=shutil.ignore_patterns("*-shm", "*.claims"))
    whole = folder.with_name(f"{folder.name}-read")
    shutil.copytree(folder, whole)
    with closing(SqliteJournal(whole / NAME)) as journal:
        records = [numbered.record for numbered in journal.records(RUN)]
    return Killed(folder, dict(ledger), records)


def damaged(
    folder: Path, kind: str, killed: Killed, earlier: Killed, draw: random.Random
) -> Resumed:
    """Damage a copy of what was left, in `folder`, and resume the run."""
    shutil.copytree(killed.folder, folder)
    _DAMAGES[kind](folder, earlier.folder, draw)
    ledger = Counter(killed.ledger)

    def charge(key: str) -> str:
        ledger[key] += 1
        return f"paid {key}"

    told: list[str] = []
    lost, refused = True, True
    try:
        with closing(SqliteJournal(folder / NAME)) as journal:
            told += journal.check()
            lost = _read(journal) != list(killed.records)
            told += journal.losses(RUN).notes
            _go_on(journal, charge)
            refused = False
    except WeftError as error:
        told.append(str(error))
    return Resumed(kind, tuple(told), lost, refused, ledger)


def _read(journal: Journal) -> list[Record]:
    return [numbered.record for numbered in journal.records(RUN)]


def _go_on(journal: Journal, charge: Callable[..., Any]) -> None:
    flow = weft.loads(_FLOW, str(Path(__file__).with_name("charges.yaml")))
    run = flow.resume(RUN, tools=_Tools(charge=charge), journal=journal)
    asyncio.run(run.wait())


def _flip(path: Path, draw: random.Random) -> None:
    if not path.exists() or not path.stat().st_size:
        return
    data = bytearray(path.read_bytes())
    at = draw.randrange(len(data))
    for place in range(at, min(len(data), at + draw.choice((1, 8)))):
        data[place] ^= draw.randint(1, 255)
    path.write_bytes(data)


def _cut(path: Path, draw: random.Random) -> None:
    if path.exists():
        data = path.read_bytes()
        path.write_bytes(data[: draw.randrange(len(data) or 1)])


def _log(folder: Path) -> Path:
    return folder / f"{NAME}-wal"


def _once(folder: Path) -> Path:
    return folder / f"{NAME}.once" / "1"


def _delete(folder: Path, table: str, draw: random.Random) -> None:
    with closing(sqlite3.connect(folder / NAME)) as db:
        rows = [row for (row,) in db.execute(f"SELECT rowid FROM {table}")]
        gone = draw.sample(rows, min(len(rows), draw.randint(1, 3)))
        db.executemany(f"DELETE FROM {table} WHERE rowid = ?", [(row,) for row in gone])
        db.commit()


def _older(path: Path, folder: Path, earlier: Path) -> None:
    path.unlink(missing_ok=True)
    before = earlier / path.relative_to(folder)
    if before.exists():
        shutil.copy(before, path)


def _alone(folder: Path, kept: str) -> None:
    for path in folder.iterdir():
        if path.name != kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


_Damage = Callable[[Path, Path, random.Random], None]
_DAMAGES: Mapping[str, _Damage] = {
    "none": lambda _folder, _earlier, _draw: None,
    "bits of the file": lambda folder, _, draw: _flip(folder / NAME, draw),
    "bits of the log": lambda folder, _, draw: _flip(_log(folder), draw),
    "bits of the once calls": lambda folder, _, draw: _flip(_once(folder), draw),
    "file cut": lambda folder, _, draw: _cut(folder / NAME, draw),
    "log cut": lambda folder, _, draw: _cut(_log(folder), draw),
    "once calls cut": lambda folder, _, draw: _cut(_once(folder), draw),
    "batches deleted": lambda folder, _, draw: _delete(folder, "batches", draw),
    "values deleted": lambda folder, _, draw: _delete(folder, "blobs", draw),
    "run deleted": lambda folder, _, draw: _delete(folder, "runs", draw),
    "log missing": lambda folder, _, __: _log(folder).unlink(missing_ok=True),
    "once calls missing": lambda folder, _, __: _once(folder).unlink(),
    "log older": lambda folder, earlier, _: _older(_log(folder), folder, earlier),
    "file older": lambda folder, earlier, _: _older(folder / NAME, folder, earlier),
    "once calls older": lambda folder, earlier, _: _older(_once(folder), folder, earlier),
    "file alone": lambda folder, _, __: _alone(folder, NAME),
    "log alone": lambda folder, _, __: _alone(folder, f"{NAME}-wal"),
}
KINDS = tuple(_DAMAGES)
