"""Isolated tools: whatever they do ends as a typed error, and nothing of them stays running."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import psutil
import pytest

from tests.agents.tools import hostile
from weft.agents.tools import Isolation, Tool, Toolbox, tool, tool_logs
from weft.core.errors import (
    BuildError,
    ToolArgumentError,
    ToolError,
    ToolLimitError,
    ToolRaised,
    ToolResultError,
)

ROOT = Path(__file__).parents[3]


def call(one: Tool[..., Any], logs: list[str] | None = None, **arguments: Any) -> Any:
    with tool_logs([].append if logs is None else logs.append):
        return asyncio.run(Toolbox(one).call(one.spec.name, arguments))


def refused(one: Tool[..., Any], kind: type[ToolError], **arguments: Any) -> ToolError:
    with pytest.raises(kind) as caught:
        call(one, **arguments)
    assert type(caught.value) is kind
    return caught.value


def gone(pid: int) -> bool:
    """Whether a process has ended, waiting for the system to notice."""
    for _ in range(6000):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("one", [hostile.twice, hostile.twice_later])
def test_a_well_behaved_tool_returns(one: Tool[..., Any]) -> None:
    assert call(one, number=21) == 42


def test_a_function_that_is_a_tool_under_another_name_is_found() -> None:
    assert call(hostile.negated, number=1) == -1


def test_a_tool_in_a_file_of_its_own_is_found(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "import weft.agents.tools as t\n"
        "@t.tool(isolate=True)\n"
        "def where() -> str:\n"
        "    return __file__\n"
    )
    box = Toolbox()
    box.declare("here", "./tools.py:where", tmp_path)
    assert asyncio.run(box.call("here", {})) == str(tmp_path / "tools.py")


def test_log_lines_come_first_and_what_is_printed_last() -> None:
    logs: list[str] = []
    assert 0 < call(hostile.talks, logs) <= 300
    assert logs[0] == "on the way"
    assert sorted(logs[1].splitlines()) == ["complained", "printed"]
    assert len(logs) == 2


def test_what_json_lacks_survives() -> None:
    assert str(call(hostile.not_a_number)["nan"]) == "nan"


def test_it_runs_in_a_process_group_of_its_own_without_our_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    seen = call(hostile.surroundings)
    assert "SECRET_KEY" not in seen["env"]
    assert seen["env"]["PATH"] == os.environ["PATH"]
    assert seen["group"] == seen["pid"] != os.getpgrp()
    assert call(hostile.trusted) == "hunter2"


def test_wrong_arguments_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    refused(hostile.twice, ToolArgumentError, number="two")
    assert refused(hostile.twice, ToolLimitError, number=2).retryable


def test_what_it_raises_is_told() -> None:
    error = refused(hostile.raises, ToolRaised, message="no luck")
    assert error.message == "raises raised ValueError: no luck"
    assert not error.retryable


def test_one_of_our_errors_keeps_its_hint_and_may_be_retried() -> None:
    error = refused(hostile.raises_ours, ToolRaised)
    assert (error.message, error.hint, error.retryable) == (
        "the endpoint is gone",
        "start it",
        True,
    )


@pytest.mark.parametrize(
    ("one", "kind", "says"),
    [
        (hostile.leaves_by_exit, ToolRaised, "SystemExit: had enough"),
        (hostile.leaves_at_once, ToolRaised, "exit status 3, without a result (the last words)"),
        (hostile.crashes, ToolRaised, "by SIGSEGV, without a result"),
        (hostile.is_killed, ToolLimitError, "was killed (the system was out of memory"),
        (hostile.lies, ToolResultError, "should be a valid integer, got 'no number' (string)"),
        (hostile.forges, ToolResultError, "wrote into its reply"),
        (hostile.asks, ToolRaised, "EOFError"),
        (hostile.loops, ToolLimitError, "took longer than its 0.5 s"),
        (hostile.burns, ToolLimitError, "more than its 1 s of processor time"),
        (hostile.asks_for_much, ToolLimitError, "more memory than its 268,435,456 bytes"),
        (hostile.grows, ToolLimitError, "more memory than its 268,435,456 bytes"),
        (hostile.prints_much, ToolLimitError, "printed more than its 1,048,576 bytes"),
        (hostile.returns_much, ToolLimitError, "returned or logged more than its 1,048,576 bytes"),
    ],
    ids=lambda value: value.spec.name if isinstance(value, Tool) else "",
)
def test_every_bad_end_is_a_typed_error(
    one: Tool[..., Any], kind: type[ToolError], says: str
) -> None:
    error = refused(one, kind)
    assert one.spec.name in str(error)
    assert says in str(error)
    assert error.retryable == ("took longer" in says)


def test_a_file_beyond_the_limit_is_told(tmp_path: Path) -> None:
    error = refused(hostile.writes_much, ToolLimitError, path=str(tmp_path / "much"))
    assert "a file of more than its 1,048,576 bytes" in error.message


def test_prints_below_the_limit_do_no_harm() -> None:
    assert call(hostile.prints_some) == 1


def test_the_least_memory_is_enough_to_start() -> None:
    assert call(hostile.modest) == "fits"


def test_a_copy_of_the_process_cannot_answer_as_well() -> None:
    assert call(hostile.forks_and_returns_twice) == 1


def test_a_child_that_outlives_the_tool_is_killed() -> None:
    logs: list[str] = []
    assert call(hostile.leaves_a_child, logs) == "done"
    assert gone(int(logs[0]))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is out of reach")
def test_a_daemon_in_a_session_of_its_own_is_killed() -> None:
    logs: list[str] = []
    assert call(hostile.leaves_a_daemon, logs) == "done"
    assert gone(int(logs[0]))


def test_cancelling_the_caller_kills_the_process_and_its_children() -> None:
    async def main() -> str:
        logged: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        with tool_logs(logged.set_result):
            task = asyncio.ensure_future(Toolbox(hostile.blocks).call("blocks", {}))
        pids = await logged
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pids

    own, child = asyncio.run(main()).split()
    assert gone(int(own))
    assert gone(int(child))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_killing_weft_itself_ends_the_tool() -> None:
    program = (
        "import asyncio\n"
        "from tests.agents.tools.hostile import blocks\n"
        "from weft.agents.tools import Toolbox, tool_logs\n"
        "with tool_logs(lambda text: print(text, flush=True)):\n"
        "    asyncio.run(Toolbox(blocks).call('blocks', {}))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as weft:
        assert weft.stdout is not None
        own, child = map(int, weft.stdout.readline().split())
        weft.kill()
        try:
            assert gone(own)
        finally:
            os.kill(child, signal.SIGKILL)


def test_only_functions_that_can_be_imported_are_isolated() -> None:
    with pytest.raises(BuildError, match="top level of a module"):

        @tool(isolate=True)
        def local() -> None:
            pass


@pytest.mark.parametrize(
    "limits",
    [
        {"timeout_s": 0},
        {"memory_bytes": 1000},
        {"output_bytes": 0},
        {"cpu_s": 0},
        {"file_bytes": -1},
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(BuildError):
        Isolation(**limits)


def test_a_timeout_of_the_tool_is_that_of_its_usual_isolation() -> None:
    assert tool(isolate=True, timeout_s=3)(hostile.plain).isolation == Isolation(timeout_s=3)


def test_a_tool_of_the_program_itself_is_found(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import asyncio\n"
        "from weft.agents.tools import Toolbox, tool\n"
        "@tool(isolate=True)\n"
        "def name() -> str:\n"
        "    return __name__\n"
        "if __name__ == '__main__':\n"
        "    print(asyncio.run(Toolbox(name).call('name', {})))\n"
    )
    run = subprocess.run(
        [sys.executable, tmp_path / "program.py"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert run.stdout.startswith("weft_file_")


def test_a_function_of_no_file_cannot_be_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    monkeypatch.setattr(hostile.plain, "__module__", "__main__")
    with pytest.raises(BuildError, match="plain is in no file"):
        tool(isolate=True)(hostile.plain)


def test_isolation_says_where_it_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.agents.tools.function.os", SimpleNamespace(name="nt"))
    with pytest.raises(BuildError, match="POSIX"):
        Isolation()
