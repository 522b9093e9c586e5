"""The events file: one line of JSON for each event, the same as the core spells them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.brief_run import brief_run
from tests.cli.hostile import ALL
from weft.cli.files import events_file
from weft.core.errors import InputError
from weft.core.events import NodeFinished, Outcome, to_json
from weft.core.ids import NodeId


def test_lines_are_what_the_core_writes(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with events_file(path) as write:
        for event in brief_run():
            write(event)
    lines = path.read_text("utf-8").splitlines()
    assert list(map(json.loads, lines)) == [json.loads(to_json(e)) for e in brief_run()]


def test_a_line_is_on_disk_as_soon_as_its_event_happened(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with events_file(path) as write:
        write(brief_run()[0])
        assert path.read_text("utf-8").endswith("}\n")


def test_values_that_json_lacks_become_text(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    odd = {("a", 1): float("inf"), "hostile": ALL, "bytes": b"x"}
    with events_file(path) as write:
        write(NodeFinished(NodeId("n"), Outcome("succeeded", odd), 1.0))
    line = path.read_bytes()
    assert line.isascii()
    assert line.count(b"\n") == 1
    value = json.loads(line)["outcome"]["value"]
    assert value == {"('a', 1)": "inf", "hostile": ALL, "bytes": "b'x'"}


def test_a_path_that_cannot_be_written_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write"), events_file(tmp_path / "no" / "where"):
        pytest.fail("it was opened")
