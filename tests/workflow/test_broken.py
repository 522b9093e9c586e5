"""Every broken file gives one error, at the right line, with a useful hint: see `expected.tsv`."""

import csv
import re
from pathlib import Path

import pytest

import weft
from weft.core.errors import SourceError

FOLDER = Path(__file__).parent / "broken"
with (FOLDER / "expected.tsv").open(encoding="utf-8", newline="") as table:
    EXPECTED = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row["file"])
def test_a_broken_file(row: dict[str, str]) -> None:
    file = FOLDER / f"{row['file']}.yaml"
    with pytest.raises(SourceError) as caught:
        weft.load(file).check()
    error = caught.value
    assert error.file == str(file)
    assert error.line == int(row["line"])
    assert row["message"] in error.message
    assert row["hint"], "every error has a hint"
    assert row["hint"] in (error.hint or "")
    if row["kind"] != "SourceError":
        assert type(error.__cause__).__name__ == row["kind"]


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row["file"])
def test_the_column_points_at_the_word(row: dict[str, str]) -> None:
    """Where the message quotes a word of the line, the column is where that word begins."""
    file = FOLDER / f"{row['file']}.yaml"
    with pytest.raises(SourceError) as caught:
        weft.load(file).check()
    error = caught.value
    assert error.column >= 1
    quoted = re.match(
        r"(?:unknown key|nothing here is called|there is no filter) `(\w+)`", error.message
    )
    if quoted:
        line = file.read_text("utf-8").splitlines()[error.line - 1]
        assert line[error.column - 1 :].startswith(quoted[1])


def test_every_broken_file_is_in_the_table() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == {row["file"] for row in EXPECTED}
    assert len(EXPECTED) >= 40


def test_included_files_are_named_themselves(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text("name: inner\nnodes:\n  a: {vaule: 1}\noutputs: {x: 1}\n")
    outer = tmp_path / "outer.yaml"
    outer.write_text(
        "name: outer\nnodes:\n  b: {workflow: ./inner.yaml}\noutputs: {x: '{{ b }}'}\n"
    )
    with pytest.raises(SourceError) as caught:
        weft.load(outer)
    assert (Path(caught.value.file).name, caught.value.line) == ("inner.yaml", 3)


@pytest.mark.parametrize("path", ["nowhere.yaml", ".", "\0", "x" * 5000])
def test_what_cannot_be_read(tmp_path: Path, path: str) -> None:
    with pytest.raises(SourceError):
        weft.load(tmp_path / path)


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    large = tmp_path / "large.yaml"
    large.write_text("# " + "x" * 4_000_000)
    with pytest.raises(SourceError, match="larger than"):
        weft.load(large)
