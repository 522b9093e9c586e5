"""A marker becomes the figure of its row, or an error that says what is missing."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from evals.figures.markers import rewritten
from evals.figures.sources import FigureError, Sources

ROWS = {
    "chain/weft/ms": 2.0,
    "chain/asyncio/ms": 0.8,
    "fan/weft/ms": 30.0,
    "fan/asyncio/ms": None,
    "fan/weft/share": 0.425,
}


def sources(folder: Path, rows: Mapping[str, float | None] = ROWS) -> Sources:
    keys = [key.split("/") for key in rows]
    found = [
        {"case": case, "system": system, "metric": metric, "value": value, "unit": ""}
        for (case, system, metric), value in zip(keys, rows.values(), strict=True)
    ]
    about = {"date": "2026-11-23"}
    (folder / "speed.json").write_text(json.dumps({"environment": about, "rows": found}))
    return Sources(folder)


def shown(asked: str, folder: Path) -> str:
    text, faults = rewritten(f"| a <!--=speed {asked}-->old<!--/--> |", sources(folder))
    assert faults == []
    before, _, rest = text.partition("-->")
    assert before == f"| a <!--=speed {asked}"
    return rest.removesuffix("<!--/--> |")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("chain/weft/ms .2f", "2.00"),
        ("chain/weft/ms / chain/asyncio/ms .1f", "2.5"),
        ("1 - chain/asyncio/ms / chain/weft/ms .0%", "60 %"),
        ("1000 * fan/weft/ms - 1 + 2 ,.0f", "30,001"),
        ("fan/weft/share .1%", "42.5 %"),
        ("max:*/weft/ms .0f", "30"),
        ("median:*/*/ms .1f", "2.0"),
        ("count:*/*/ms .0f", "3"),
        ("?fan/asyncio/ms .0f", ""),
        ("@date", "2026-11-23"),
    ],
)
def test_a_figure_is_worked_out_of_rows(asked: str, told: str, tmp_path: Path) -> None:
    assert shown(asked, tmp_path) == told


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("chain/none/ms .2f", "speed.json has no figure chain/none/ms"),
        ("fan/asyncio/ms .2f", "speed.json has no figure fan/asyncio/ms"),
        ("min:none/*/ms .2f", "no figure none/"),
        ("chain/weft/ms", "does not end in a format"),
        ("chain/weft/ms s", "does not end in a format"),
        ("chain/weft/ms / 0 .2f", "cannot be worked out"),
        ("chain/weft/ms fan/weft/ms .2f", "cannot be worked out"),
        ("+ .2f", "cannot be worked out|operand|no figure"),
        ("@machine", "does not say its machine"),
    ],
)
def test_what_a_file_lacks_is_an_error(asked: str, why: str, tmp_path: Path) -> None:
    text = f"<!--=speed {asked}-->old<!--/-->"
    unchanged, (fault,) = rewritten(text, sources(tmp_path))
    assert unchanged == text
    assert re.match(f"line 1: .*({why})", fault)


def test_a_file_that_is_missing_is_an_error_with_its_line(tmp_path: Path) -> None:
    text = "\n<!--=slow a/b/c .1f-->1<!--/--> <!--=speed @date-->x<!--/-->"
    made, faults = rewritten(text, sources(tmp_path))
    assert made == text.replace("x", "2026-11-23")
    assert faults == [f"line 2: there is no slow.json in {tmp_path.name}"]


def test_two_rows_of_one_key_are_an_error(tmp_path: Path) -> None:
    sources(tmp_path)
    found = json.loads((tmp_path / "speed.json").read_text())
    found["rows"].append(found["rows"][0])
    (tmp_path / "speed.json").write_text(json.dumps(found))
    with pytest.raises(FigureError, match="two rows chain/weft/ms"):
        Sources(tmp_path)("speed")


TABLE = """before
<!--table speed
head: case | system
col: ms (of asyncio) = [{}/ms .1f] ([?{}/ms / chain/asyncio/ms .1f])
col: share = [?{}/share .0%]
rows: */weft
row: the chain | by hand = chain/asyncio
-->
| old |
<!--/-->
after"""


def test_a_table_has_a_row_for_each_that_matches(tmp_path: Path) -> None:
    text, faults = rewritten(TABLE, sources(tmp_path))
    assert faults == []
    assert text.splitlines()[8:-2] == [
        "| case | system | ms (of asyncio) | share |",
        "| --- | --- | --- | --- |",
        "| chain | weft | 2.0 (2.5) |  |",
        "| fan | weft | 30.0 (37.5) | 42 % |",
        "| the chain | by hand | 0.8 (1.0) |  |",
    ]
    assert text.splitlines()[-2:] == ["<!--/-->", "after"]
    assert rewritten(text, sources(tmp_path)) == (text, [])


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("rows: */weft", "rows: */none", "no rows match"),
        ("head: case | system", "head: case", "one label"),
        ("head: case", "hat: case", "has no"),
        ("rows: */weft", "row: a | b", "no figure a/b/ms"),
    ],
)
def test_a_table_that_cannot_be_made_is_an_error(
    old: str, new: str, why: str, tmp_path: Path
) -> None:
    text = TABLE.replace(old, new)
    unchanged, (fault,) = rewritten(text, sources(tmp_path))
    assert unchanged == text
    assert re.match(f"line 2: .*{why}", fault)
