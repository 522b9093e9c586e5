"""What earlier servers wrote, read back at a start; a broken file gives less and fails nobody."""

from __future__ import annotations

from pathlib import Path

from weft.serving.vllm.drafting.shared_texts import TextArchive


def test_a_later_server_knows_what_an_earlier_one_kept(tmp_path: Path) -> None:
    TextArchive(tmp_path, "/models/small", 100).keep("plan", [1, 2, 3])
    later = TextArchive(tmp_path, "/models/small", 100)
    assert list(later.texts()) == [("plan", (1, 2, 3))]
    later.keep("edit", [4, 5, 6])
    later.keep("", [7, 8, 9])
    later.keep("plan", [7, 8])
    assert list(TextArchive(tmp_path, "/models/small", 100).texts()) == [
        ("plan", (1, 2, 3)),
        ("edit", (4, 5, 6)),
    ]
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o077 == 0


def test_another_model_or_vocabulary_is_another_file(tmp_path: Path) -> None:
    TextArchive(tmp_path, "small", 100).keep("plan", [1, 2, 3])
    assert list(TextArchive(tmp_path, "small", 50).texts()) == []
    assert list(TextArchive(tmp_path, "large", 100).texts()) == []
    TextArchive(tmp_path, "../../../etc/x", 100).keep("plan", [1, 2, 3])
    assert all(file.parent == tmp_path for file in tmp_path.rglob("*"))


def test_only_the_last_texts_are_kept(tmp_path: Path) -> None:
    known = TextArchive(tmp_path, "small", 100_000)
    for number in range(4100):
        known.keep("plan", [number, 1, 2])
    texts = list(TextArchive(tmp_path, "small", 100_000).texts())
    assert len(texts) == 2000
    assert texts[-1] == ("plan", (3999, 1, 2))  # what one server may add is bounded too


def test_a_broken_file_gives_what_can_be_read(tmp_path: Path) -> None:
    known = TextArchive(tmp_path, "small", 100)
    known.keep("plan", [1, 2, 3])
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"\xff\xfe garbage\n[1, 2]\n" + file.read_bytes() + b'{"label": "a", "tok')
    assert list(known.texts()) == [("plan", (1, 2, 3))]


def test_a_folder_that_cannot_be_used_is_no_error(tmp_path: Path) -> None:
    known = TextArchive(tmp_path / "missing", "small", 100)
    known.keep("plan", [1, 2, 3])
    assert list(known.texts()) == []
    (tmp_path / "small-100.jsonl").mkdir()
    assert list(TextArchive(tmp_path, "small", 100).texts()) == []
