"""`weft write` that is killed and resumed asks the model for no finished answer twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from evals.scripted_server import ScriptedServer
from tests.workflow.author.script import QUERY, TOOLS, good_answer, layer_of

PATIENCE_S = 300.0
WEFT = [sys.executable, "-c", "from weft.cli.entry import run; run()"]


def test_no_call_is_made_twice(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    asked: Counter[str] = Counter()
    held, gate = threading.Event(), threading.Event()

    def answer(messages: list[dict[str, Any]]) -> str:
        layer = layer_of(str(messages[0]["content"]))
        asked[layer] += 1
        if layer == "skeleton" and not gate.is_set():
            held.set()
            gate.wait(PATIENCE_S)
        return json.dumps(good_answer(layer))

    def started(*words: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "WEFT_JOURNAL": str(tmp_path / "journal.sqlite")}
        return subprocess.Popen(
            [*WEFT, *words],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    with ScriptedServer(answer) as server:
        command = ["write", QUERY, "-t", "./tools.py", "--out", "flow.yaml", "--run-id", "one"]
        model = ["--model", "scripted", "--base-url", server.base_url]
        with started(*command, *model, "--durability", "sync") as process:
            assert held.wait(PATIENCE_S)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=PATIENCE_S)
        assert not (tmp_path / "flow.yaml").exists()
        gate.set()
        with started("resume", "one") as process:
            out, error = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, out + error
    assert asked.pop("skeleton") == 2  # the call under way was lost
    assert set(asked.values()) == {1}
    golden = Path(__file__).parents[1] / "golden" / "workflow_written.yaml"
    lines = (tmp_path / "flow.yaml").read_text().splitlines()
    assert lines[-20:] == golden.read_text().splitlines()[-20:]
