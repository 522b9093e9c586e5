"""README.md and docs/ say what the committed rows say, and no measured number but these."""

import re
from pathlib import Path

import pytest

from evals.figures.__main__ import faults, texts
from evals.figures.sources import Sources
from evals.figures.unmarked import unmarked
from evals.results import REPOSITORY

BENCHMARKS = REPOSITORY / "docs" / "benchmarks"
SOURCES = Sources(BENCHMARKS)


def name(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


@pytest.mark.parametrize("path", list(texts()), ids=name)
def test_figures_are_those_of_the_rows(path: Path) -> None:
    assert list(faults(path, SOURCES)) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("<!--=security none/gateway/median_ms .1f-->9.9<!--/--> ms", "differs from its files"),
        ("<!--=security none/gateway/mean_ms .1f-->9.9<!--/--> ms", "line 1: security.json has no"),
        ("\nabout 12 ms", "line 2: “12 ms” is measured, and nothing says where"),
        ("<!--given limit-->some<!--/-->", "“some” is marked as given and is no number"),
        ("`<!--=security @date--><!--/-->`", "a marker in code is seen"),
        ("<!--given by tests/evals/none.py-->\n| 5 ms |\n<!--/-->", "compares no table of page.md"),
        (
            "<!--given by tests/test_layers.py-->\n| 5 ms |\n<!--/-->",
            "compares no table of page.md",
        ),
    ],
)
def test_a_text_that_says_something_else_is_told(text: str, fault: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    assert any(fault in told for told in faults(page, SOURCES))


def test_every_file_of_rows_is_read_by_a_text_and_listed() -> None:
    read = "".join(path.read_text("utf-8") for path in texts())
    index = (BENCHMARKS / "README.md").read_text("utf-8")
    for path in BENCHMARKS.glob("*.json"):
        assert re.search(rf"<!--(=|table ){path.stem}\s", read), f"no text reads {path.name}"
        assert f"({path.name})" in index, f"the index does not name {path.name}"


@pytest.mark.parametrize("plot", sorted(BENCHMARKS.glob("*.png")), ids=name)
def test_a_plot_stands_beside_the_rows_that_it_draws(plot: Path) -> None:
    assert plot.with_suffix(".json").is_file()
    assert any(plot.name in path.read_text("utf-8") for path in texts())


@pytest.mark.parametrize("path", sorted((REPOSITORY / "docs" / "adr").glob("*.md")), ids=name)
def test_a_decision_that_has_figures_says_when_and_how_they_were_taken(path: Path) -> None:
    text = path.read_text("utf-8")
    if list(unmarked(text)):
        assert re.search(r"^Date: 20\d\d-\d\d-\d\d", text, re.MULTILINE)
        assert "python -m evals." in text
