"""Data sets: where rows come from, what becomes of them, and where they are refused."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.errors import BuildError, InputError, SourceError

ROWS = [{"q": "why?", "expected": "so", "topic": "tea"}, {"q": "how?", "expected": "thus"}]


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_the_same_cases_come_from_jsonl_csv_a_function_and_rows(tmp_path: Path) -> None:
    lines = written(tmp_path, "cases.jsonl", "\n\n".join(map(json.dumps, ROWS)))
    table = written(tmp_path, "cases.csv", "q,expected,topic\nwhy?,so,tea\nhow?,thus,\n")
    written(tmp_path, "data.py", f"def rows():\n    return {ROWS!r}\n")
    mapping = {"inputs": {"question": "{{ case.q }}"}, "group": "topic"}
    rows = [{**row, "topic": row.get("topic", "")} for row in ROWS]
    sources: list[Any] = [table, rows, lambda: rows]
    digests = {weft.cases(source, **mapping).digest for source in sources}  # type: ignore[arg-type]
    assert len(digests) == 1
    with pytest.raises(InputError, match="there is no 'topic'"):
        weft.cases(lines, **mapping)  # type: ignore[arg-type]
    called = weft.cases("./data.py:rows", folder=tmp_path, inputs={"question": "{{ case.q }}"})
    assert list(called) == list(weft.cases(lines, inputs={"question": "{{ case.q }}"}))
    first = called[0]
    assert (first.id, first.inputs, first.expected) == ("1", {"question": "why?"}, "so")
    assert first.split in ("train", "dev", "held_out")


def test_columns_are_inputs_unless_a_mapping_or_inputs_say_otherwise() -> None:
    plain, nested = weft.cases([{"a": 1, "id": "x"}]), weft.cases([{"inputs": {"a": 1}, "b": 2}])
    assert plain[0] == weft.Case("x", {"a": 1}, None, "x", plain[0].split)
    assert nested[0].inputs == {"a": 1}


def test_a_filter_keeps_the_numbers_of_the_rows() -> None:
    data = weft.cases(ROWS, filter="{{ case.q == 'how?' }}")
    assert [case.id for case in data] == ["2"]
    assert [case.id for case in data.where(lambda case: case.id == "1")] == []
    assert len(data.where("{{ case.expected == 'thus' }}")) == 1


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", '{"q": 1}\n{"q"', "2:1"),
        ("a.jsonl", "[1]\n", "not a JSON object"),
        ("a.csv", "q,r\n1\n", "another number of cells"),
        ("a.csv", 'q\n"open\n', "unexpected end"),
        ("a.txt", "", "no data set can be read"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    with pytest.raises((SourceError, InputError)) as caught:
        weft.cases(written(tmp_path, name, text))
    assert said in str(caught.value)


def test_what_is_no_data_set_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "data.py", "def fails():\n    raise KeyError('gone')\nnone = 3\n")
    for source, said in {
        "missing.csv": "there is no file",
        "./data.py:fails": "KeyError",
        "./data.py:none": "no function",
        "./data.py:absent": "has no absent",
    }.items():
        with pytest.raises(BuildError, match=said):
            weft.cases(source, folder=tmp_path)
    with pytest.raises(InputError, match="two cases have the id 'x'"):
        weft.cases([{"id": "x"}, {"id": "x"}])
    with pytest.raises(InputError, match="row 1 is no mapping"):
        weft.cases([3])  # type: ignore[list-item]
    with pytest.raises(InputError, match="there is no row"):
        weft.cases(ROWS, filter="{{ row.q }}")
    with pytest.raises(InputError, match="there is no split 'test'"):
        weft.cases([{"split": "test"}])


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, "a.parquet", "")
    for package, source in (("pyarrow", file), ("datasets", "hf:openai/gsm8k:test")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(BuildError, match=f"{package} is missing") as caught:
            weft.cases(source)
        assert str(caught.value.hint).startswith("pip install")


def test_parquet_is_read_as_jsonl_is(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"q": "why?", "expected": [1, 2]}, {"q": "how?", "expected": None}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    lines = written(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    assert list(weft.cases(tmp_path / "a.parquet")) == list(weft.cases(lines))
    written(tmp_path, "b.parquet", "no parquet")
    with pytest.raises(InputError, match="cannot read"):
        weft.cases(tmp_path / "b.parquet")


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=3), st.integers()), unique=True, max_size=40)
)
def test_a_group_is_in_one_split_whatever_else_is_there(rows: list[tuple[str, int]]) -> None:
    made = [{"group": group, "x": number} for group, number in rows]
    whole = {case.group: case.split for case in weft.cases(made)}
    for part in (made[::2], made[1::2]):
        assert all(case.split == whole[case.group] for case in weft.cases(part))


def test_splits_have_about_their_shares() -> None:
    data = weft.cases([{"x": n} for n in range(4000)])
    counts = Counter(case.split for case in data)
    assert counts["train"] == pytest.approx(1600, abs=120)
    assert counts["dev"] == pytest.approx(1200, abs=120)
    only = weft.cases([{"x": n} for n in range(50)], shares=(0, 1, 0))
    assert len(only.split("dev")) == 50
    with pytest.raises(InputError, match="no shares"):
        weft.cases([{"x": 1}], shares=(0, 0, 0))
