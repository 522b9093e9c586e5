"""Two runs side by side, and runs as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflow.case import loads
from tests.workflow.history.recorded_runs import House
from weft.core.errors import Failure, RunExists, SourceError
from weft.core.events import NodeFinished, NodeInfo, Outcome, RunFinished, RunStarted
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import NumberedRecord, RunHeader
from weft.core.values import Usage
from weft.testing import MemoryJournal, Reply
from weft.workflow.history.cassette_file import import_run, read_cassette, write_cassette
from weft.workflow.history.compare import compare
from weft.workflow.history.recorded_workflow import rebuild_or_read_unit, result_of
from weft.workflow.history.replay import replay
from weft.workflow.history.run_history import RunHistory

NODES = """\
  one: {model: small, prompt: "{{ topic }}"}
  two: {model: small, prompt: "same"}
  extra: {when: "{{ topic == 'tea' }}", value: [1]}"""


def two() -> tuple[RunHistory, RunHistory]:
    house, flow = House(), loads(NODES, 'a: "{{ one }}\\nend"')
    house.run(flow, inputs={"topic": "tea"})
    tea = house.story()
    house.script = lambda r: Reply(f"<{r.messages[-1].content}>", first_token_s=2.0)
    house.run(flow, inputs={"topic": "salt"})
    return tea, house.story()


def test_what_differs() -> None:
    found = compare(*two())
    assert not found.same
    same = {pair.node: (pair.left.status, pair.right.status, pair.same) for pair in found.nodes}
    assert same == {
        "one": ("succeeded", "succeeded", False),
        "two": ("succeeded", "succeeded", True),
        "extra": ("succeeded", "skipped", False),
    }
    assert found.outputs == {"a": ("@@ -1,2 +1,2 @@", "-<tea>", "+<salt>", " end")}
    assert list(found.inputs) == ["topic"]
    assert found.left.wall_s < found.right.wall_s
    assert found.left.tokens == found.right.tokens > 0
    assert found.right.path[-1][1] == pytest.approx(2.0)


def test_what_stood_in_for_a_node_is_told() -> None:
    failure = Failure("ToolRaised", "no")
    sides = []
    for via in ("", "default"):
        outcome = Outcome("succeeded", 1, failure if via else None, via=via)
        events = (
            RunStarted(RunId("r"), "flow", "", (NodeInfo(NodeId("a"), "tool"),), {}),
            NodeFinished(NodeId("a"), outcome, 1.0),
            RunFinished("succeeded", Usage(), (), 1.0),
        )
        records = [NumberedRecord(seq, 1, event) for seq, event in enumerate(events, 1)]
        sides.append(RunHistory(RunHeader(RunId("r"), "flow", "", ""), records))
    (pair,) = compare(*sides).nodes
    assert (pair.left.via, pair.right.via, pair.same) == ("", "default", False)


def test_a_run_is_like_itself() -> None:
    tea, _ = two()
    assert compare(tea, tea).same


def test_a_run_as_a_file(tmp_path: Path) -> None:
    tea, _ = two()
    size = write_cassette(tea, tmp_path / "tea.cassette")
    assert size == (tmp_path / "tea.cassette").stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == ["tea.cassette"]
    assert all(map(json.loads, (tmp_path / "tea.cassette").read_text("utf-8").splitlines()))
    read = read_cassette(tmp_path / "tea.cassette")
    assert read.records == tea.records
    assert "folder" not in read.header.settings
    assert result_of(read).outputs == {"a": "<tea>\nend"}
    journal = MemoryJournal()
    assert import_run(journal, read) == tea.run
    with pytest.raises(RunExists):
        import_run(journal, read)
    assert import_run(journal, read, RunId("other")) == "other"
    assert [one.record for one in journal.records(RunId("other"))] == [
        one.record for one in tea.records
    ]
    assert journal.summary(tea.run).standing == "succeeded"


def test_a_file_tells_no_names_of_secrets_that_are_not_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_OWN_TOKEN", "0123456789abc")
    monkeypatch.setenv("OTHER_TOKEN", "9876543210abc")
    house, flow = House(), loads('  a: {model: small, prompt: "{{ topic }}"}')
    house.run(flow, inputs={"topic": "my 0123456789abc"})
    write_cassette(house.story(), tmp_path / "c")
    text = (tmp_path / "c").read_text("utf-8")
    assert "0123456789abc" not in text
    assert read_cassette(tmp_path / "c").header.secrets == ("MY_OWN_TOKEN",)


def test_a_cassette_replays_without_any_file(tmp_path: Path) -> None:
    house = House()
    head = "name: case\ninputs: {topic: {type: string, default: x}}\nmodels: {small: 'local:x'}\n"
    flow = loads('  a: {model: small, prompt: "{{ topic }}"}', head=head)
    house.run(flow)
    write_cassette(house.story(), tmp_path / "c")
    read = read_cassette(tmp_path / "c")
    found = replay(read, rebuild_or_read_unit(read.header))
    assert found.ok, found.report()
    assert found.result.outputs == {"a": "<x>"}


def _cut(lines: list[str]) -> list[str]:
    return lines[:1]


def _future(lines: list[str]) -> list[str]:
    return [lines[0].replace("1", "99"), *lines[1:]]


def _no_header(lines: list[str]) -> list[str]:
    return [lines[0], *lines[2:]]


def _spoiled(lines: list[str]) -> list[str]:
    return [*lines[:3], lines[3][:-9], *lines[4:]]


def _foreign(lines: list[str]) -> list[str]:
    return [*lines[:3], '[1,1,{"~":"os.system"}]']


def _header_as_record(lines: list[str]) -> list[str]:
    return [*lines, f"[9,1,{lines[1]}]"]


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (_cut, 2),
        (_future, 1),
        (_no_header, 2),
        (_spoiled, 4),
        (_foreign, 4),
        (_header_as_record, None),
        (lambda _: ["null"], 1),
        (lambda _: ["[" * 100_000], 1),
        (lambda _: [], 1),
    ],
)
def test_a_file_that_is_no_cassette(
    tmp_path: Path, spoil: Callable[[list[str]], list[str]], line: int | None
) -> None:
    tea, _ = two()
    write_cassette(tea, tmp_path / "c")
    lines = (tmp_path / "c").read_text("utf-8").splitlines()
    (tmp_path / "c").write_text("\n".join(spoil(lines)), "utf-8")
    with pytest.raises(SourceError) as raised:
        read_cassette(tmp_path / "c")
    assert raised.value.line == (len(lines) + 1 if line is None else line)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SourceError, match="utf-8"):
        read_cassette(tmp_path / "c")
