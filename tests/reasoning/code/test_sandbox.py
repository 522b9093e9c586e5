"""The sandbox as its users see it: programs, files, limits, cancellation, refusals."""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tests.reasoning.code.sandbox_support import Marked, needs_protection, processes_with
from weft.core.errors import SandboxError
from weft.reasoning.code.sandbox.jail.filesystem import why_no_rules
from weft.reasoning.code.sandbox.outcome import SandboxResult
from weft.reasoning.code.sandbox.request import SandboxLimits
from weft.reasoning.code.sandbox.sandbox import CodeSandbox

ROOT = str(Path(__file__).parents[3])
LIMITS = SandboxLimits(wall_s=120.0, cpu_s=5)


def run(source: str, stdin: str = "", **files: str | bytes) -> SandboxResult:
    named = {name.replace("_", "/", 1) + ".txt": content for name, content in files.items()}
    return asyncio.run(CodeSandbox(LIMITS).run(dedent(source), stdin, named))


def until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 120
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


@needs_protection
def test_a_program_reads_its_input_and_prints() -> None:
    ran = run("print(sum(map(int, input().split())), 'é')", "1 2 3\n")
    assert (ran.status, ran.stdout, ran.stderr, ran.exit_code) == ("finished", "6 é\n", "", 0)
    assert ran.ok
    assert 0 < ran.seconds < LIMITS.wall_s
    assert ran.peak_bytes > 1_000_000
    assert ran.cpu_s > 0


@needs_protection
def test_a_program_has_its_files_and_may_write_beside_them() -> None:
    source = """
    from pathlib import Path
    held = Path("a/b.txt").read_bytes()
    Path("a/c.txt").write_bytes(held * 2)
    Path("a/b.txt").unlink()
    print(sorted(str(path) for path in Path().rglob("*")), Path("a/c.txt").stat().st_size)
    """
    ran = run(source, a_b=b"\xff\x00")
    assert ran.stdout == "['a', 'a/c.txt', 'main.py'] 4\n"


@needs_protection
def test_the_end_of_a_program_has_a_reason() -> None:
    failed = run("raise ValueError('so')")
    assert (failed.status, failed.exit_code, failed.why) == ("failed", 1, "ValueError: so")
    assert not failed.ok
    quiet = run("raise SystemExit(7)")
    assert (quiet.exit_code, quiet.why) == (7, "it ended with exit code 7")
    killed = run("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)")
    assert (killed.status, killed.signal, killed.exit_code) == ("killed", signal.SIGTERM, None)
    assert killed.why == "it ended by SIGTERM"


@needs_protection
def test_input_that_is_not_read_or_is_large_is_no_trouble() -> None:
    assert run("print(1)", "x" * 1_000_000).stdout == "1\n"
    assert run("import sys\nprint(len(sys.stdin.read()))", "x" * 1_000_000).stdout == "1000000\n"
    assert run("print(ascii(input()))", "\ud800").stdout == "'?'\n"


@needs_protection
def test_any_command_can_be_run_with_what_it_needs() -> None:
    async def main() -> SandboxResult:
        needs = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
        sandbox = CodeSandbox(LIMITS, reads=needs)
        return await sandbox.execute(("/bin/cat", "f"), files={"f": "; $(x)"}, reads=("/bin/cat",))

    assert asyncio.run(main()).stdout == "; $(x)"


@needs_protection
def test_what_may_be_read_is_found_wherever_it_lies(tmp_path: Path) -> None:
    held = tmp_path / "held"
    held.mkdir()
    (held / "word").write_text("read")
    (tmp_path / "secret").write_text("HARM")
    (tmp_path / "link").symlink_to(held)
    source = f"""
import os
print(open({str(held / "word")!r}).read(), open({str(tmp_path / "link" / "word")!r}).read())
print(os.listdir({str(tmp_path)!r}))
"""
    reads = (str(held), str(tmp_path / "link"), str(tmp_path / "absent"))
    ran = asyncio.run(CodeSandbox(LIMITS, reads=reads).run(source))
    first, second = ran.stdout.splitlines()
    assert first == "read read"
    assert sorted(second[1:-1].split(", ")) == ["'held'", "'link'"]


@needs_protection
def test_a_command_that_is_not_there_is_an_error_of_ours() -> None:
    with pytest.raises(SandboxError, match=r"/bin/absent cannot be run: .*No such file"):
        asyncio.run(CodeSandbox(LIMITS).execute(("/bin/absent",)))


@needs_protection
def test_programs_run_side_by_side() -> None:
    async def main() -> list[SandboxResult]:
        sandbox = CodeSandbox(LIMITS)
        source = "open('own', 'x').close()\nprint(input())"
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(sandbox.run(source, str(n))) for n in range(4)]
        return [task.result() for task in running]

    assert [ran.stdout for ran in asyncio.run(main())] == ["0\n", "1\n", "2\n", "3\n"]


@needs_protection
def test_cancelling_leaves_no_process() -> None:
    async def main() -> None:
        marked = Marked(CodeSandbox(SandboxLimits(wall_s=600)))
        running = asyncio.create_task(marked.run("import os, time\nos.fork()\ntime.sleep(600)"))
        end = time.monotonic() + 120
        while len(marked.processes()) < 2 and time.monotonic() < end:
            await asyncio.sleep(0.02)
        assert len(marked.processes()) == 2
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not marked.processes()

    asyncio.run(main())


@needs_protection
def test_nothing_outlives_weft_itself() -> None:
    source = """
    import asyncio, sys
    from tests.reasoning.code.sandbox_support import Marked
    from weft.reasoning.code.sandbox.sandbox import CodeSandbox
    marked = Marked(CodeSandbox())
    print(marked.mark, flush=True)
    asyncio.run(marked.run("import time\\ntime.sleep(600)"))
    """
    command = (sys.executable, "-c", dedent(source))
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as weft:
        try:
            assert weft.stdout is not None
            mark = weft.stdout.readline().strip()
            assert until(lambda: bool(processes_with(mark)))
        finally:
            weft.kill()
    assert until(lambda: not processes_with(mark))


@needs_protection
def test_the_kept_descriptors_and_processes_of_weft_stay_as_many() -> None:
    async def main() -> tuple[int, int]:
        sandbox = CodeSandbox(LIMITS)
        await sandbox.run("")
        before = len([*Path("/proc/self/fd").iterdir()])
        for _ in range(3):
            await sandbox.run("print(1)")
        return before, len([*Path("/proc/self/fd").iterdir()])

    before, after = asyncio.run(main())
    assert after < before + 3, "not one of three leaves anything behind"


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "", ".", "x\0y"])
def test_a_file_outside_the_directory_is_refused(name: str) -> None:
    with pytest.raises(SandboxError, match="not a path inside"):
        asyncio.run(CodeSandbox().run("", files={name: ""}))


def test_too_much_input_is_refused() -> None:
    with pytest.raises(SandboxError, match="is given 101 bytes; it may be given 100"):
        asyncio.run(CodeSandbox(SandboxLimits(input_bytes=100)).run("", "x" * 101))


@needs_protection
def test_files_that_do_not_fit_the_directory_are_refused() -> None:
    with pytest.raises(SandboxError, match="No space left"):
        asyncio.run(
            CodeSandbox(SandboxLimits(disk_bytes=4096)).run("", files={"a": b"x" * 100_000})
        )


@pytest.mark.parametrize("name", ["wall_s", "memory_bytes", "processes"])
def test_limits_are_positive(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be positive"):
        SandboxLimits(**{name: 0})


def test_an_unknown_protection_is_refused() -> None:
    with pytest.raises(SandboxError, match="no protection 'net'") as caught:
        CodeSandbox(allow=("net",))  # type: ignore[arg-type]
    assert "processes, network, files, disk, calls, memory" in str(caught.value)


def test_another_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxError, match="network: darwin has no namespaces"):
        asyncio.run(CodeSandbox().run(""))


def refuse(calls: dict[int, int]) -> None:
    """Install a filter that answers `calls` (number: error) as a container's would."""
    steps = [(0x20, 0, 0, 0)]
    for number, error in calls.items():
        steps += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | error)]
    steps.append((0x06, 0, 0, 0x7FFF0000))
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    program = Program(len(steps), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0


NAMESPACES = {272: 1, 165: 1}
LANDLOCK = {444: 38}


def confined(source: str, calls: dict[int, int]) -> str:
    """What a Python program prints that runs where `calls` are refused."""
    before = f"from tests.reasoning.code.test_sandbox import refuse\nrefuse({calls})\n"
    command = (sys.executable, "-c", before + dedent(source))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=99, check=True)
    return done.stdout


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter names calls by number")
def test_without_namespaces_every_missing_protection_is_named_and_nothing_runs() -> None:
    printed = confined(
        """
        import asyncio
        from weft.core.errors import SandboxError
        from weft.reasoning.code.sandbox.sandbox import CodeSandbox
        print(dict(asyncio.run(CodeSandbox().missing())))
        for allow in ((), ("processes", "disk")):
            try:
                print(asyncio.run(CodeSandbox(allow=allow).run("print('HARM')")))
            except SandboxError as error:
                print(error)
        """,
        NAMESPACES | LANDLOCK,
    )
    missing, first, second = printed.splitlines()
    assert missing.startswith("{'processes': 'user namespaces: ")
    assert "'files'" in missing
    assert "'network'" not in missing  # the filter of system calls sees to it
    assert "cannot protect from programs (processes: " in first
    assert "allow=('processes', 'files', 'disk',)" in first
    assert "files: unshare: Operation not permitted; Landlock: Function not implemented)" in second
    assert "HARM" not in printed


needs_landlock = pytest.mark.skipif(
    platform.machine() != "x86_64" or bool(why_no_rules()),
    reason=f"{why_no_rules()}, or the filter does not know this machine's calls",
)


@needs_landlock
def test_with_landlock_alone_files_are_still_kept() -> None:
    printed = confined(
        """
        import asyncio
        from weft.reasoning.code.sandbox.sandbox import CodeSandbox
        print(sorted(asyncio.run(CodeSandbox().missing())))
        """,
        NAMESPACES,
    )
    assert printed == "['disk', 'processes']\n"


@needs_landlock
@pytest.mark.skipif(
    os.geteuid() == 0,
    reason="as root, an interpreter in a private directory cannot be run by another user",
)
def test_what_is_allowed_to_be_missing_is_done_without() -> None:
    printed = confined(
        """
        import asyncio
        from weft.reasoning.code.sandbox.sandbox import CodeSandbox
        sandbox = CodeSandbox(allow=("processes", "disk"))
        print(asyncio.run(sandbox.run("print(open('a').read())", files={"a": "b"})).stdout)
        for source in ("import socket\\nsocket.socket()", "open('/etc/passwd')"):
            print(asyncio.run(sandbox.run(source)).why[:35])
        """,
        NAMESPACES,
    )
    refused = "PermissionError: [Errno 13] Permission"[:35]
    assert printed.splitlines() == ["b", "", refused, refused]


@needs_landlock
def test_rules_on_files(tmp_path: Path) -> None:
    for name in ("read", "box", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    source = f"""
    import os
    from weft.reasoning.code.sandbox.jail.seccomp import restrict_calls
    from weft.reasoning.code.sandbox.jail.kernel import PR_SET_NO_NEW_PRIVS, prctl
    from weft.reasoning.code.sandbox.jail.filesystem import restrict_files
    os.chdir({str(tmp_path)!r})
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    restrict_files(["read", "absent"], ["/dev/null"], "box")
    restrict_calls(attributes=False)
    print(open("read/file").read(), os.listdir("read"))
    os.mkdir("box/new")
    os.rename("box/file", "box/new/file")
    open("/dev/null", "w").write("x")
    for attempt in (
        lambda: open("other/file"), lambda: open("read/file", "a"), lambda: os.listdir("other"),
        lambda: os.truncate("other/file", 0), lambda: os.unlink("read/file"),
        lambda: os.link("read/file", "box/link"), lambda: os.rename("box/new", "other/new"),
        lambda: os.mkdir("other/new"), lambda: os.symlink("x", "read/x"),
        lambda: open("/proc/1/stat"),
        lambda: os.chmod("other/file", 0), lambda: os.utime("other/file"),
        lambda: os.setxattr("other/file", "user.x", b"x"), lambda: os.chown("other/file", 1, 1),
    ):
        try:
            print("HARM", attempt())
        except OSError as error:
            print(type(error).__name__)
    """
    command = (sys.executable, "-c", dedent(source))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    first, *rest = done.stdout.splitlines()
    assert first == "read ['file']", done.stderr
    assert len(rest) == 14
    assert set(rest) <= {"PermissionError", "OSError"}, rest
    assert (tmp_path / "other" / "file").read_text() == "other"


@needs_protection
def test_root_of_a_user_namespace_is_only_the_user_it_is_outside() -> None:
    source = """
    import asyncio, os
    from pathlib import Path
    from weft.reasoning.code.sandbox.jail.kernel import CLONE_NEWUSER, unshare
    from weft.reasoning.code.sandbox.sandbox import CodeSandbox
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    print(os.geteuid(), dict(asyncio.run(CodeSandbox().missing())))
    """
    command = (sys.executable, "-c", dedent(source))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=99, check=True)
    if os.geteuid() == 0:  # it is the system's root, whose processes the kernel does not count
        assert done.stdout.startswith("0 {'processes': 'processes of root cannot be counted")
    else:
        assert done.stdout == "0 {}\n"
