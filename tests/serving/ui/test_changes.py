"""News of the journal as they come, from whichever process wrote."""

from __future__ import annotations

from tests.serving.ui.scripted import Script, info
from tests.serving.ui.ui_server import house
from weft.core.errors import StoreError
from weft.testing.journal import MemoryJournal


class Moody(MemoryJournal):
    """A journal that cannot be asked for its version at first."""

    refusals = 3

    def version(self) -> int:
        if self.refusals:
            self.refusals -= 1
            raise StoreError("locked")
        return super().version()


def test_what_is_written_is_told() -> None:
    journal = MemoryJournal()
    script = Script(journal, "live")
    with house(journal) as here, here.http.stream("GET", "/api/changes") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = (line for line in stream.iter_lines() if line.startswith("event"))
        assert next(lines) == "event: change"
        for _ in range(5):
            script.begin(info("a"))
            assert next(lines) == "event: change"


def test_a_journal_that_cannot_be_read_now_is_asked_again() -> None:
    journal = Moody()
    with house(journal) as here, here.http.stream("GET", "/api/changes") as stream:
        lines = (line for line in stream.iter_lines() if line.startswith("event"))
        assert [next(lines), next(lines)] == ["event: change"] * 2
        assert journal.refusals == 0


def test_the_end_of_the_server_ends_the_streams() -> None:
    with house() as here, here.http.stream("GET", "/api/changes") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: change"
        here.stop()
        assert len(list(lines)) < 10  # it ends, perhaps after a last change
