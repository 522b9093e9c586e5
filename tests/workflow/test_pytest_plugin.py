"""The fixture `weft_replay`, as a user's test has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflow.case import loads
from tests.workflow.runs.house import House
from weft.pytest_plugin import Replaying
from weft.workflow.runs.cassette_file import write_cassette

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


def test_what_differs_fails_the_test(cassette: Path, weft_replay: Replaying) -> None:
    changed = loads(NODES.replace("tell", "ask"), head=HEAD)
    with pytest.raises(pytest.fail.Exception, match=r"the model small: message 1 .user.: .-tell-"):
        weft_replay(cassette, changed)
    assert weft_replay(cassette, changed, drift=True).drifts
