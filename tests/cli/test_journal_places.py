"""Journals that are not there, or that may not be written, on the command line."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.command_line import go_into
from tests.cli.command_line import typed as weft
from tests.serving.ui.ui_server import house
from weft.core.errors import StoreError
from weft.core.events import HumanAsked
from weft.core.ids import RunId
from weft.core.ports.journal import Journal
from weft.durability.journal.sqlite import journal as module
from weft.workflow.apps.ui import RunsPage
from weft.workflow.runtime.journals import open_journal

FLOW = """
name: bill
nodes:
  sure: {ask: "Sure?", schema: boolean}
outputs: {sure: "{{ sure }}"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch, "own/journal.sqlite")
    (tmp_path / "bill.yaml").write_text(FLOW)
    return tmp_path


def test_the_page_of_a_journal_that_is_not_there_is_refused(folder: Path) -> None:
    for place in ("nowhere/j.sqlite", "typo.sqlite"):
        refused = weft("ui", "--no-open", "--journal", place)
        assert refused.exit_code == 1
        assert f"there is no journal {place}" in refused.stderr
        assert "hint: is the path right?" in refused.stderr
    assert [file.name for file in folder.iterdir()] == ["bill.yaml"]


LOOKING = (
    "runs",
    "runs show one",
    "runs prune one",
    "replay one",
    "diff one two",
    "simulate one",
    "queue list",
    "queue versions",
    "queue retry one",
    "queue cancel one",
    "schedule list",
    "schedule remove nightly",
    "answer one sure y",
    "conversations list",
    "resume one",
)


def test_what_reads_creates_no_mistyped_journal(folder: Path) -> None:
    for words in LOOKING:
        refused = weft(*words.split(), "--journal", "typo.sqlite")
        assert refused.exit_code == 1, (words, refused.output)
        assert "there is no journal typo.sqlite" in refused.stderr, words
        assert "hint: is the path right?" in refused.stderr
    assert [file.name for file in folder.iterdir()] == ["bill.yaml"]


def test_what_writes_says_that_it_begins_a_journal(folder: Path) -> None:
    for number, words in enumerate(
        ("submit bill.yaml", "schedule add nightly '0 3 * * *' bill.yaml")
    ):
        done = weft(*shlex.split(words), "--journal", f"new{number}.sqlite")
        assert f"new{number}.sqlite: created it" in " ".join(done.stderr.split()), words
        assert (
            "created it" not in weft(*shlex.split(words), "--journal", f"new{number}.sqlite").stderr
        )


def test_an_address_of_another_kind_is_no_file(folder: Path) -> None:
    for place in ("postgress://db/x", "mysql://db/x"):
        refused = weft("submit", "bill.yaml", "--journal", place)
        assert (refused.exit_code, "a journal cannot be at" in refused.stderr) == (1, True)
        assert "hint: name a file, or a server as postgresql://" in refused.stderr
    assert [file.name for file in folder.iterdir()] == ["bill.yaml"]


def test_who_has_recorded_nothing_yet_and_names_no_journal_gets_an_empty_page(folder: Path) -> None:
    page = RunsPage()
    asyncio.run(page.serve(page.stop))
    assert (folder / "own" / "journal.sqlite").is_file()
    assert "no run is recorded" in weft("runs").stdout


def recorded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs and a third that asks, in a journal that may not be written from then on."""
    for name in ("one", "two"):
        assert weft("run", "bill.yaml", "--run-id", name, "--answer", "sure=y").exit_code == 0
    assert weft("run", "bill.yaml", "--run-id", "three").exit_code == 4

    def denied(path: Path, *, power_safe: bool) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(module, "opened", denied)


READING = (
    "runs",
    "runs list --json",
    "runs show three",
    "replay one",
    "diff one two",
    "simulate one",
    "runs export one one.cassette",
)
WRITING = (
    "run bill.yaml",
    "resume three",
    "answer three sure y",
    "replay one --from sure",
    "runs prune one",
    "runs import kept.cassette --as four",
)


def test_what_only_reads_needs_no_journal_that_may_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weft("run", "bill.yaml", "--run-id", "kept", "--answer", "sure=n")
    weft("runs", "export", "kept", "kept.cassette")
    recorded(folder, monkeypatch)
    before = (folder / "own" / "journal.sqlite").read_bytes()
    for words in READING:
        read = weft(*words.split())
        assert read.exit_code == 0, (words, read.output)
    assert "three" in weft("runs").stdout
    for words in WRITING:
        refused = weft(*words.split())
        assert refused.exit_code == 1, (words, refused.output)
        assert "cannot be written: Permission denied" in refused.stderr, words
        assert "hint: may this user write to that file" in refused.stderr, words
    assert (folder / "own" / "journal.sqlite").read_bytes() == before


def asked(journal: Journal) -> int:
    """The record with the question of the third run."""
    records = journal.records(RunId("three"))
    (seq,) = (record.seq for record in records if isinstance(record.record, HumanAsked))
    return seq


def test_the_page_shows_a_journal_that_may_not_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(folder, monkeypatch)
    place = folder / "own" / "journal.sqlite"
    page = RunsPage(place)
    asyncio.run(page.serve(page.stop))
    with closing(open_journal(place, to_read=True)) as journal, house(journal) as here:
        assert {run["run"] for run in here.get("/api/runs")["runs"]} == {"one", "two", "three"}
        letter = {"kind": "answer", "node": "sure", "question": asked(journal), "value": True}
        refused = here.http.post("/api/letters?run=three", json=letter)
        assert refused.status_code == 503
        assert "it can only be read" in refused.json()["message"]
        assert "let this user write" in refused.json()["hint"]


def test_a_journal_in_a_folder_that_may_not_be_entered_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", denied)
    with pytest.raises(StoreError, match=r"Permission denied \(may this user enter"):
        open_journal(folder / "j.sqlite")
