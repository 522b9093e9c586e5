"""The fixture `weft_replay`, as a user's test has it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.workflow.case import loads
from tests.workflow.history.recorded_runs import House
from weft.pytest_plugin import Replaying
from weft.workflow.history.cassette_file import read_cassette, write_cassette

NODES = '  a: {model: small, prompt: "tell {{ topic }}"}'
HEAD = "name: case\ninputs: {topic: {type: string, default: x}}\nmodels: {small: 'local:x'}\n"


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    house = House()
    house.run(loads(NODES, head=HEAD))
    write_cassette(house.story(), tmp_path / "one.cassette")
    return tmp_path / "one.cassette"


def test_a_cassette_is_repeated(cassette: Path, weft_replay: Replaying) -> None:
    assert weft_replay(cassette).result.outputs == {"a": "<tell x>"}
    assert weft_replay(cassette, loads(NODES, head=HEAD)).identical == 1


def test_a_workflow_in_a_file(cassette: Path, weft_replay: Replaying) -> None:
    file = cassette.parent / "flow.yaml"
    file.write_text(f"{HEAD}nodes:\n{NODES}\noutputs: {{a: '{{{{ a }}}}'}}\n")
    assert weft_replay(cassette, file).ok


@pytest.mark.parametrize(
    ("file", "flow", "told"),
    [
        ("none.cassette", None, r"^none.cassette: .*cannot read it: No such file"),
        ("one.cassette", "none.yaml", r"^one.cassette: .*none.yaml.*cannot read the file"),
        ("broken.cassette", None, r"not a cassette.*`weft runs export RUN FILE` writes such"),
    ],
)
def test_what_cannot_be_repeated_is_said_in_a_sentence(
    cassette: Path, weft_replay: Replaying, file: str, flow: str | None, told: str
) -> None:
    (cassette.parent / "broken.cassette").write_text("name: case\n")
    given = None if flow is None else cassette.parent / flow
    with pytest.raises(pytest.fail.Exception, match=file) as raised:
        weft_replay(cassette.parent / file, given)
    said = str(raised.value).replace(f"{cassette.parent}/", "")
    assert re.search(told, said), said
    assert "weft_replay(" not in said
    assert not raised.value.pytrace
    assert raised.value.__context__ is None  # pytest would show what led there


def test_a_workflow_that_cannot_be_read_from_the_cassette_is_asked_for(
    cassette: Path, weft_replay: Replaying
) -> None:
    story = read_cassette(cassette)
    header = replace(story.header, document={"flow.yaml": "nodes: nothing"})
    write_cassette(replace(story, header=header), cassette)
    with pytest.raises(pytest.fail.Exception, match="cannot be read from its record") as raised:
        weft_replay(cassette)
    assert f"name its file: weft_replay({str(cassette)!r}, 'FLOW.yaml')" in str(raised.value)


def test_what_differs_fails_the_test(cassette: Path, weft_replay: Replaying) -> None:
    changed = loads(NODES.replace("tell", "ask"), head=HEAD)
    with pytest.raises(pytest.fail.Exception, match=r"the model small: message 1 .user.: .-tell-"):
        weft_replay(cassette, changed)
    assert weft_replay(cassette, changed, drift=True).drifts
