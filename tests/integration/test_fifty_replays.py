"""Fifty recorded runs come out the same in another process, folder, home and of another name."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.workflow.history.recorded_runs import House
from weft.agents.tools.threads import threads_awaited
from weft.core.ports import ModelRequest
from weft.testing import FakeModel, Reply
from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.nodes import AskNode
from weft.workflow.history.cassette_file import write_cassette

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(path.relative_to(EXAMPLES) for path in EXAMPLES.rglob("*.yaml"))
KINDS = (
    'model: small, prompt: "{n} {{{{ {s} }}}}"',
    'map: [1, 2, 3], as: i, width: 2, do: {{model: small, prompt: "{{{{ i }}}} {{{{ {s} }}}}"}}',
    (
        'loop: {{model: small, prompt: "{{{{ v }}}}"}}, as: v, start: "{{{{ {s} }}}}", '
        'until: "{{{{ iteration >= 2 }}}}", max: 3'
    ),
    (
        'branch: "{{{{ {s} | string | length > 6 }}}}", '
        'cases: {{"true": {{value: long}}, default: {{model: small, prompt: short}}}}'
    ),
    'value: ["{{{{ {s} }}}}", {n}]',
    'model: small, prompt: "s {{{{ {s} }}}}", samples: 3',
    'model: small, prompt: "{n}", retry: 2, timeout: 4s, default: late',
)
SCRIPT = """
import sys
from pathlib import Path
from weft.workflow.document.loader import load_unit
from weft.workflow.history.cassette_file import read_cassette
from weft.workflow.history.replay import replay

for cassette, file in zip(sys.argv[1::2], sys.argv[2::2]):
    found = replay(read_cassette(Path(cassette)), load_unit(Path(file)))
    print(cassette, found.identical, "identical" if found.ok else found.report())
"""


def said(request: ModelRequest) -> Reply:
    dice = sum(request.messages[-1].content.encode()) % 9
    return Reply(f"words {dice}", first_token_s=dice / 2, per_token_s=0.05)


def program(seed: int) -> str:
    """A workflow of five nodes, each on one before."""
    dice = random.Random(seed)
    nodes = ["  n0: {value: begin}"]
    for number in range(1, 6):
        text = dice.choice(KINDS).format(n=number, s=f"n{dice.randrange(number)}")
        nodes.append(f"  n{number}: {{{text}}}")
    lines = "\n".join(nodes)
    models = "models: {small: 'local:smollm2-135m-instruct'}"
    return f"name: program\n{models}\nnodes:\n{lines}\noutputs: {{a: '{{{{ n5 }}}}'}}\n"


def given(flow: weft.Flow) -> dict[str, Any]:
    """Something for every input without a default."""
    plain = {
        "string": "tea",
        "integer": 2,
        "number": 0.5,
        "boolean": True,
        "array": [],
        "object": {},
    }
    return {
        name: plain.get(str(declared.root.get("type")), "tea")
        for name, declared in flow.inputs.items()
        if declared.required
    }


def record(file: Path, cassette: Path) -> None:
    house, flow = House(said), weft.load(file)
    models = {name: FakeModel(said) for name in flow.document.models}
    steps = [(path[-1], step) for path, step in walk(flow.nodes)]
    answers = {
        str(name): True if step.output_schema.get("type") == "boolean" else "so"
        for name, step in steps
        if isinstance(step, AskNode)
    }
    settings = {**house.settings(), "models": models, "tools": None}
    # The tools and functions of the examples are real, and work in threads.
    house.clock.busy = lambda: threads_awaited(asyncio.get_running_loop()) > 0
    house.wait(lambda: flow.start(given(flow), **settings), answers, pause_s=60.0)
    write_cassette(house.story(), cassette)


def test_fifty_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # an example writes into the file that its input names
    here, there = tmp_path / "here", tmp_path / "elsewhere" / "deeper"
    shutil.copytree(EXAMPLES, here)
    files = [here / file for file in FILES]
    for seed in range(50 - len(files)):
        files.append(here / f"program{seed}.yaml")
        files[-1].write_text(program(seed))
    words: list[str] = []
    for number, file in enumerate(files):
        cassette = tmp_path / f"{number}.cassette"
        record(file, cassette)
        words += [str(cassette), str(there / file.relative_to(here))]
    there.parent.mkdir()
    here.rename(there)
    environment = {
        **os.environ,
        "HOME": str(tmp_path / "home"),
        "USER": "other",
        "TZ": "Asia/Tokyo",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert [line.rsplit(" ", 1)[-1] for line in lines] == ["identical"] * 50, (
        done.stdout + done.stderr
    )
    assert sum(int(line.split()[1]) for line in lines) > 400
