"""Damaged records and journals that cannot be written to, as the command line tells of them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import go_into
from tests.cli.command_line import typed as weft
from tests.cli.test_runs import FLOW, TOOLS
from weft.core.calls import ToolCalled
from weft.core.errors import StoreError
from weft.core.ids import RunId
from weft.core.ports.journal import Record
from weft.durability.journal.sqlite import SqliteJournal
from weft.workflow.runtime.journals import open_journal


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch)
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "bill.yaml").write_text(FLOW)
    return tmp_path


@pytest.fixture
def asking() -> None:
    """A run that has paid, and asks why."""
    assert weft("run", "bill.yaml", "--run-id", "one", "--answer", "sure=y").exit_code == 4


def data(*words: str) -> Any:
    return json.loads(weft(*words, "--json").stdout)


def forget(folder: Path, *, upto_pay: bool = False) -> None:
    """Delete the third batch of the run; or all from the payment on, as a damaged log would."""
    with closing(open_journal()) as journal:
        seqs = [one.seq for one in journal.records(RunId("one"))]
        pay = next(
            one.seq
            for one in journal.records(RunId("one"))
            if isinstance(one.record, ToolCalled) and one.record.tool == "pay"
        )
    assert seqs
    with closing(sqlite3.connect(folder / "journal.sqlite")) as db:
        keys = [key for (key,) in db.execute("SELECT key FROM batches ORDER BY key")]
        gone = [key for key in keys if key % (1 << 32) >= pay] if upto_pay else keys[2:3]
        db.executemany("DELETE FROM batches WHERE key = ?", [(key,) for key in gone])
        db.commit()


@pytest.mark.usefixtures("asking")
def test_a_sound_journal_is_said_to_be_sound() -> None:
    assert "1 run: all that was recorded is there" in weft("runs", "check").stdout
    assert data("runs", "check") == {"sound": True, "problems": []}
    assert weft("runs", "show", "one", "--salvage").exit_code == 0
    assert data("runs", "show", "one")["lost"] == []


@pytest.mark.usefixtures("asking")
def test_a_damaged_run_says_where_it_is_and_what_to_do(folder: Path) -> None:
    forget(folder)
    shown = weft("runs", "show", "one")
    assert shown.exit_code == 1
    for told in (str(folder / "journal.sqlite"), "'one'", "are missing", "one --salvage"):
        assert told in shown.stderr.replace("\n", ""), told
    checked = weft("runs", "check")
    assert checked.exit_code == 1
    assert "run 'one': the records from" in checked.stdout
    resumed = weft("resume", "one", "--answer", "why=so")
    assert resumed.exit_code == 1
    assert (folder / "ledger").read_text() == "6\n"


@pytest.mark.usefixtures("asking")
def test_what_is_sound_of_a_damaged_run_is_shown_exported_and_gone_on_with(folder: Path) -> None:
    forget(folder)
    shown = weft("runs", "show", "one", "--salvage")
    assert shown.exit_code == 3
    assert "lost: the records from" in shown.stdout
    assert "pay" in shown.stdout
    assert weft("runs", "export", "one", "one.cassette").exit_code == 1
    exported = weft("runs", "export", "one", "one.cassette", "--salvage")
    assert exported.exit_code == 3
    assert "lost: the records from" in exported.stderr
    assert weft("runs", "import", "one.cassette", "--as", "two").exit_code == 0
    resumed = weft(
        "resume", "two", "--file", "bill.yaml", "--answer", "sure=y", "--answer", "why=x"
    )
    assert "lost: the records from" in resumed.stderr
    assert (folder / "ledger").read_text() == "6\n"


@pytest.mark.usefixtures("asking")
def test_a_payment_whose_record_is_lost_is_known_from_beside_the_journal(folder: Path) -> None:
    forget(folder, upto_pay=True)
    shown = weft("runs", "show", "one")
    assert shown.exit_code == 3
    assert "lost: the records from" in shown.stdout
    assert [call["done"] for call in data("runs", "show", "one")["once"]] == ["done"]
    resumed = weft("resume", "one", "--answer", "sure=y", "--answer", "why=so")
    assert resumed.exit_code == 0, resumed.output
    assert "lost: the records from" in resumed.stderr
    assert (folder / "ledger").read_text() == "6\n"
    assert weft("runs", "show", "one").exit_code == 0


@pytest.mark.usefixtures("asking")
def test_where_nobody_knows_which_payments_were_made_a_person_says_so(folder: Path) -> None:
    forget(folder, upto_pay=True)
    shutil.rmtree(folder / "journal.sqlite.once")
    answers = ("--answer", "sure=y", "--answer", "why=so")
    refused = weft("resume", "one", *answers)
    assert refused.exit_code == 1, refused.output
    assert "may have been made" in refused.stderr
    assert "nobody knows whether pay was carried out" in refused.output
    assert (folder / "ledger").read_text() == "6\n"
    resumed = weft("resume", "one", "--confirm", 'paid=done:"paid 6"')
    assert resumed.exit_code == 0, resumed.output
    assert "paid 6: so" in resumed.stdout
    assert (folder / "ledger").read_text() == "6\n"


@pytest.mark.usefixtures("asking")
def test_a_person_may_say_that_a_lost_payment_was_not_made(folder: Path) -> None:
    forget(folder, upto_pay=True)
    shutil.rmtree(folder / "journal.sqlite.once")
    answers = ("--answer", "sure=y", "--answer", "why=so")
    resumed = weft("resume", "one", *answers, "--confirm", "paid=repeat")
    assert resumed.exit_code == 0, resumed.output
    assert (folder / "ledger").read_text() == "6\n6\n"


def test_a_run_whose_journal_cannot_be_written_to_is_suspended(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = FLOW.replace("nodes:", "run: {journal_wait: 200ms}\nnodes:", 1)
    (folder / "bill.yaml").write_text(text)
    append, appends = SqliteJournal.append, 0

    def locked(
        self: SqliteJournal, run: RunId, records: Sequence[Record], *, wait: bool = True
    ) -> None:
        nonlocal appends
        appends += 1
        if appends > 2:
            raise StoreError("another process has locked it", retryable=True)
        append(self, run, records, wait=wait)

    answers = ("--answer", "sure=y", "--answer", "why=so")
    with monkeypatch.context() as patched:
        patched.setattr(SqliteJournal, "append", locked)
        left = weft("run", "bill.yaml", "--run-id", "one", *answers)
    assert left.exit_code == 5, left.output
    assert left.stdout.startswith("bill was suspended")
    assert "its journal could not be written for 0.2 s" in left.output
    assert "suspended: resume it with `weft resume one`" in left.stderr
    assert data("runs")[0]["standing"] == "asking", "in its record it has not ended"
    resumed = weft("resume", "one", *answers)
    assert resumed.exit_code == 0, resumed.output
    assert (folder / "ledger").read_text() == "6\n"


def gone(folder: Path, how: str) -> None:
    """Lose the database of a run that was killed: its log, or all of the file."""
    for path in folder.glob("journal.sqlite*"):
        if path.is_file() and (how == "vanished" or path.name != "journal.sqlite"):
            path.unlink()
    if how == "emptied":
        (folder / "journal.sqlite").write_bytes(b"")
    if how == "log lost":
        (folder / "journal.sqlite").unlink()
        SqliteJournal(folder / "journal.sqlite").close()  # what the file was before its first run


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("how", ["emptied", "vanished", "log lost"])
def test_a_run_that_the_database_has_lost_is_told_and_not_begun_anew(
    folder: Path, how: str
) -> None:
    gone(folder, how)
    checked = weft("runs", "check")
    assert checked.exit_code == 1
    assert "the run 'one' is missing" in checked.stdout
    listed = weft("runs")
    assert listed.exit_code == 3
    assert "lost: the journal has lost the run 'one'" in listed.stderr
    assert "no run is recorded" not in listed.stdout
    assert weft("runs", "--json").exit_code == 3
    for words in ("runs show one", "runs show last", "resume one", "resume"):
        refused = weft(*words.split())
        assert refused.exit_code == 1, refused.output
        assert "the journal has lost the run 'one'" in refused.stderr
    assert "pay" in weft("runs", "show", "one").stdout
    again = weft("run", "bill.yaml", "--run-id", "one", "--answer", "sure=y")
    assert again.exit_code == 1
    assert "the journal has lost the run 'one'" in again.stderr
    assert (folder / "ledger").read_text() == "6\n"


@pytest.mark.usefixtures("asking")
def test_another_run_leaves_what_is_known_of_a_lost_one(folder: Path) -> None:
    gone(folder, "emptied")
    before = (folder / "journal.sqlite.once" / "1").read_bytes()
    assert weft("run", "bill.yaml", "--run-id", "two", "--answer", "sure=n").exit_code == 4
    assert (folder / "journal.sqlite.once" / "1").read_bytes() == before
    listed = weft("runs")
    assert listed.exit_code == 3
    assert "'one'" in listed.stderr
    assert "two" in listed.stdout
    assert "run 'one' is missing" in weft("runs", "check").stdout
    (folder / "journal.sqlite.once" / "1").rename(folder / "one.once")
    assert weft("runs").exit_code == 0
    assert weft("run", "bill.yaml", "--run-id", "one", "--answer", "sure=n").exit_code == 4
