"""`weft doctor` as a person types it, with findings of a test's own."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tests.cli.hostile import FORBIDDEN
from weft.cli.main import app
from weft.serving import doctor
from weft.serving.doctor import Check

FINE = Check("vllm", "ok", "vllm 0.32.0 on cuda, loads", serves=True)
BROKEN = Check("vllm", "broken", "it says \x1b[31mno\x1b[0m [bold]here[/]", "pip install sense")
IDLE = Check("extra providers", "ok", "3.11")


@pytest.mark.parametrize(("found", "code"), [(FINE, 0), (BROKEN, 1)])
def test_doctor(monkeypatch: pytest.MonkeyPatch, found: Check, code: int) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: iter([IDLE, found]))
    shown = CliRunner().invoke(app, ["doctor"])
    assert shown.exit_code == code
    assert ("Nothing here can run a model yet." in shown.stdout) == (code == 1)
    assert "extra providers  ok " in shown.stdout
    assert not set(shown.stdout) & set(FORBIDDEN)
    if found is BROKEN:
        assert "vllm             broken   it says no [bold]here[/]\n" in shown.stdout
        assert "→ pip install sense\n" in shown.stdout


def test_doctor_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: iter([IDLE, FINE]))
    shown = CliRunner().invoke(app, ["doctor", "--json"])
    said = json.loads(shown.stdout)
    assert said["can_serve"] is True
    assert said["checks"][0] == {
        "name": "extra providers",
        "status": "ok",
        "found": "3.11",
        "advice": "",
        "serves": False,
    }
