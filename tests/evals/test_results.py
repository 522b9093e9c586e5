"""What an evaluation leaves behind says what made it."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from evals.results import REPOSITORY, environment, write_results

COMMITTED = sorted((REPOSITORY / "docs" / "benchmarks").glob("*.json"))


@dataclass(frozen=True)
class Figure:
    case: str
    system: str
    metric: str
    value: float | None
    unit: str


def test_rows_are_written_below_what_made_them(tmp_path: Path) -> None:
    written = tmp_path / "rows.json"
    write_results(written, [Figure("a", "b", "c", 1.5, "ms")], environment(("ruff",), model="m"))
    found = json.loads(written.read_text())
    assert found["rows"] == [
        {"case": "a", "system": "b", "metric": "c", "value": 1.5, "unit": "ms"}
    ]
    about = found["environment"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", about["date"])
    assert about["commit"] == "unknown" or re.fullmatch(
        r"[0-9a-f]{12}(\+changes)?", about["commit"]
    )
    assert "cores" in about["machine"]
    assert float(about["load"]) >= 0
    assert about["ruff"][0].isdigit()
    assert about["model"] == "m"


def test_the_command_is_told_without_what_it_writes_and_without_places(tmp_path: Path) -> None:
    code = "import evals.results as r; print(r.environment()['command'])"
    script = tmp_path / "measure.py"
    script.write_text(code)
    command = [sys.executable, str(script), "--only", "a", "--json", "x.json", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert ended.stdout.strip() == f"measure.py --only a {tmp_path.name}"


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_rows_say_what_made_them(path: Path) -> None:
    found = json.loads(path.read_text("utf-8"))
    about = found["environment"]
    assert all(about[name] for name in ("date", "commit", "machine", "command"))
    assert about["command"].startswith("python -m evals.")
    keys = [(row["case"], row["system"], row["metric"]) for row in found["rows"]]
    assert len(set(keys)) == len(keys)
    assert all(set(row) == {"case", "system", "metric", "value", "unit"} for row in found["rows"])
