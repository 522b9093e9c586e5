"""Which failures of a tool `retry` repeats: the table in docs/workflows.md."""

from __future__ import annotations

from pathlib import Path
from urllib.error import URLError

import pytest

import weft
from weft.core.errors import ToolRaised
from weft.core.values import Effect

RETRY = {"attempts": 3, "delay": 0}


@pytest.mark.parametrize("effect", ["unknown", "once"])
@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (weft.NotDone("declined"), 3),
        (weft.NotDone("never", retryable=False), 1),
        (ToolRaised("busy", retryable=True), 3),
        (ToolRaised("broken"), 1),
        (ConnectionResetError("gone"), 3),
        (TimeoutError("late"), 3),
        (RuntimeError("a bug"), 1),
        (OSError("no such disk"), 1),
        (URLError("no such host"), 1),
    ],
    ids=repr,
)
def test_what_is_tried_again(error: Exception, attempts: int, effect: Effect) -> None:
    made: list[int] = []

    @weft.tool(effect=effect)
    def pay(amount: int) -> str:
        """Pay."""
        made.append(amount)
        raise error

    flow = weft.Flow("f")
    flow.output(r=flow.tool(pay, amount=30, retry=RETRY))
    result = flow.run_sync()
    assert result.status == "failed"
    if effect == "once" and not isinstance(error, weft.NotDone):
        attempts = 1  # nobody knows whether it acted
    assert len(made) == attempts


def test_a_call_that_did_not_happen_is_made_again_from_a_process_too(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "import pathlib\n\nimport weft\n\n\n@weft.tool(effect='once')\n"
        "def pay(amount: int) -> str:\n    '''Pay.'''\n"
        f"    tries = pathlib.Path({str(tmp_path / 'tries')!r})\n"
        "    with tries.open('a') as told:\n        told.write('x')\n"
        "    if tries.read_text() == 'x':\n        raise weft.NotDone('declined')\n"
        "    return 'paid'\n"
    )
    (tmp_path / "f.yaml").write_text(
        "name: f\ntools: {pay: {use: './tools.py:pay', isolate: {timeout: 60s}}}\n"
        "nodes: {r: {tool: pay, with: {amount: 30}, retry: {attempts: 3, delay: 0}}}\n"
        "outputs: {r: '{{ r }}'}\n"
    )
    result = weft.load(tmp_path / "f.yaml").run_sync()
    assert result.outputs == {"r": "paid"}, result.missing
    assert (tmp_path / "tries").read_text() == "xx"
