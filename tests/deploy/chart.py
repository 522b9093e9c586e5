"""The Helm chart, and what Helm makes of it: golden files, so that tests do without Helm.

`python -m tests.deploy.chart` writes them, where `helm` is installed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "weft"
VALUES = sorted((Path(__file__).parent / "values").glob("*.yaml"))
_GOLDEN = ROOT / "tests" / "golden"
_HEAD = "# chart and values: sha256 "


def golden(values: Path) -> Path:
    """The file with what Helm renders for these values."""
    return _GOLDEN / f"helm_{values.name}"


def digest(values: Path) -> str:
    """The digest of all that a rendering depends on."""
    total = sha256()
    for file in [*sorted(path for path in CHART.rglob("*") if path.is_file()), values]:
        total.update(f"{file.name}\0".encode() + file.read_bytes() + b"\0")
    return total.hexdigest()


def recorded_digest(values: Path) -> str:
    """The digest of the chart and values that the golden file was rendered from."""
    return golden(values).read_text("utf-8").partition("\n")[0].removeprefix(_HEAD)


def documents(text: str) -> list[dict[str, Any]]:
    """The manifests in a text, as plain values, by kind and name."""
    found = [json.loads(json.dumps(each)) for each in YAML(typ="safe").load_all(text) if each]
    return sorted(found, key=lambda each: (each["kind"], each["metadata"]["name"]))


def rendered(values: Path) -> list[dict[str, Any]]:
    """What Helm rendered: the manifests of the golden file."""
    return documents(golden(values).read_text("utf-8"))


def helm(values: Path) -> str | None:
    """What Helm renders now; None where it is not installed."""
    program = shutil.which("helm")
    if program is None:
        return None
    command = [program, "template", "demo", str(CHART), "--values", str(values)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def write(values: Path, text: str) -> None:
    """Write the golden file."""
    body = "\n".join(line.rstrip() for line in text.strip().splitlines())
    golden(values).write_text(f"{_HEAD}{digest(values)}\n{body}\n", "utf-8")


if __name__ == "__main__":
    for each in VALUES:
        output = helm(each)
        if output is None:
            sys.exit("helm is not installed")
        write(each, output)
