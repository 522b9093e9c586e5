"""The example with a memory: what is said in one run is found in a later one."""

import shutil
from pathlib import Path

import weft
from weft.testing import FakeModel

FILE = Path(__file__).parents[2] / "examples/memory/memory.yaml"


def test_what_was_said_in_one_run_is_found_in_another(tmp_path: Path) -> None:
    file = shutil.copy(FILE, tmp_path)
    said = ("Ada drinks tea, never coffee.", "Bob has a boat.", "What does Ada drink?")
    model = FakeModel(["Noted.", "Noted.", "Tea."])
    for number, message in enumerate(said, 1):
        result = weft.load(file).run_sync(message=message, models={"small": model}, journal=None)
        assert result.ok, result.reasons
        assert result["id"] == number
    assert result["reply"] == "Tea."
    assert [hit["text"] for hit in result["hits"]] == ["Ada drinks tea, never coffee."]
    assert "- Ada drinks tea" in model.requests[-1].messages[-1].content
