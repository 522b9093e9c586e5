from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from weft.durability.content_folder import FolderContentStore
from weft.errors import StoreError

_WRITER = """
import asyncio, sys
from weft.durability.content_folder import FolderContentStore

async def main():
    store = FolderContentStore(sys.argv[1])
    for number in range(10**9):
        digest = await store.put(str(number).encode() * 5_000)
        print(digest, flush=True)

asyncio.run(main())
"""


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    store = FolderContentStore(tmp_path / "store")
    asyncio.run(store.put(b"private"))
    for path in (tmp_path / "store").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_a_killed_writer_leaves_no_half_content_under_a_digest(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    with writer:
        told = [writer.stdout.readline().strip() for _ in range(20)]
        writer.send_signal(signal.SIGKILL)
        told += writer.stdout.read().split()

    async def check() -> None:
        store = FolderContentStore(tmp_path)
        for digest in told:
            if len(digest) == 71:  # a last line may be cut
                assert await store.get(digest)
        for file in files_in(tmp_path / "sha256"):
            assert await store.get(f"sha256:{file.parent.name}{file.name}")

    asyncio.run(check())


def test_files_abandoned_by_writers_are_removed_after_a_day(tmp_path: Path) -> None:
    asyncio.run(FolderContentStore(tmp_path).put(b"first"))
    old, young = (tmp_path / ".partial" / name for name in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (1.0, 1.0))
    asyncio.run(FolderContentStore(tmp_path).put(b"second"))
    assert not old.exists()
    assert young.exists()


def test_a_failed_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    store = FolderContentStore(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="is full: No space left"):
        asyncio.run(store.put(b"content"))
    assert not files_in(tmp_path)


def test_content_is_on_the_disk_before_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    sync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (order.append(_kind(file)), sync(file))[1])
    monkeypatch.setattr(Path, "replace", lambda a, b: (order.append("rename"), rename(a, b))[1])
    asyncio.run(FolderContentStore(tmp_path).put(b"content"))
    assert order == ["file", "rename", "folder", "folder", "folder"]


def _kind(descriptor: int) -> str:
    return "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"


@pytest.mark.parametrize("blocked", ["", "sha256"])
def test_a_file_in_the_place_of_a_folder_is_a_store_error(tmp_path: Path, blocked: str) -> None:
    (tmp_path / "store").mkdir()
    place = tmp_path / "store" / (blocked or "it")
    place.write_text("a file")
    store = FolderContentStore(tmp_path / "store" / ("" if blocked else "it"))
    with pytest.raises(StoreError, match="the content store"):
        asyncio.run(store.put(b"content"))
