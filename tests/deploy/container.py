"""A container without a container engine: namespaces of the kernel, and a root of its own.

Its root has the folders that Python needs, read-only; only `/tmp` and the home of the image's user
are writable. It has no network but its own loopback.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.containerfile import ImageConfig

_SYSTEM = ("/bin", "/etc", "/lib", "/lib64", "/sbin", "/usr")
_LOOPBACK = """
import fcntl, socket, struct
with socket.socket() as one:
    fcntl.ioctl(one, 0x8914, struct.pack("16sH14s", b"lo", 0x1 | 0x40, b""))  # up and running
"""


@dataclass(frozen=True, slots=True)
class Container:
    """Runs commands as the image's user. `mounts`: folders that it sees, by where it sees them."""

    config: ImageConfig
    root: Path
    mounts: Mapping[Path, Path]

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a shell script there, and wait for its end."""
        inside = self._mounts() + self._start(script)
        command = ["unshare", "--mount", "--net", "sh", "-euc", inside]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def _mounts(self) -> str:
        root = shlex.quote(str(self.root))
        lines = [
            "mount --make-rprivate /",
            f"mount -t tmpfs -o mode=0755 tmpfs {root}",
            f"{shlex.quote(sys.executable)} -c {shlex.quote(_LOOPBACK)}",
        ]
        for writable in ("/tmp", self.config.environment["WEFT_HOME"]):
            lines.append(f"mkdir -p {root}{writable}")
            lines.append(f"mount -t tmpfs -o mode=1777 tmpfs {root}{writable}")
        for folder in map(Path, _SYSTEM):
            if folder.is_symlink():
                lines.append(f"cp -a {folder} {root}{folder}")
            elif folder.is_dir():
                lines += self._bind(folder, folder)
        for place, folder in self.mounts.items():
            lines += self._bind(folder, place)
        lines.append(f"mkdir -p {root}/dev {root}/proc")
        lines += [f"touch {root}/dev/null {root}/dev/urandom"]
        lines += [f"mount --bind /dev/{name} {root}/dev/{name}" for name in ("null", "urandom")]
        lines += [f"mount --rbind /proc {root}/proc"]
        lines += [f"mount -o remount,ro,mode=0755 {root}"]
        return "\n".join(lines) + "\n"

    def _bind(self, folder: Path, place: Path) -> list[str]:
        target = shlex.quote(f"{self.root}{place}")
        return [
            f"mkdir -p {target}",
            f"mount --bind {shlex.quote(str(folder))} {target}",
            f"mount -o remount,bind,ro {target}",
        ]

    def _start(self, script: str) -> str:
        user, _, group = self.config.user.partition(":")
        variables = [f"{name}={value}" for name, value in self.config.environment.items()]
        other = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
        other += ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
        command = f"cd {self.config.folder} && {script}"
        words = ["chroot", str(self.root), *other, "env", "-i", *variables, "sh", "-uc", command]
        return f"exec {shlex.join(words)}\n"


def container(config: ImageConfig, root: Path, mounts: Mapping[Path, Path]) -> Container:
    """A container, where the kernel allows it; else skips the test, and says why."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    for name in ("unshare", "setpriv", "mount", "chroot"):
        if shutil.which(name) is None:
            pytest.skip(f"there is no program {name} here")
    made = Container(config, root, mounts)
    done = made.run("true")
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        pytest.skip(f"this machine refuses a container of its own: {reason}")
    return made


def needed_folders(environment: Path) -> Sequence[Path]:
    """The folders that a virtual environment needs: its own, Python's, and what it links to."""
    found = {environment.resolve(), Path(sys.base_prefix).resolve()}
    for entry in environment.glob("lib/python*/site-packages/*"):
        if entry.is_symlink():
            found.add(entry.resolve().parent)
    for linked in environment.glob("lib/python*/site-packages/*/*"):
        if linked.is_symlink():
            found.add(linked.resolve().parent)
    outer: list[Path] = []
    for folder in sorted(found):
        if not any(folder.is_relative_to(other) for other in outer):
            outer.append(folder)
    return [folder for folder in outer if not str(folder).startswith("/usr/")]
