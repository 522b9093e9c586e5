"""The evaluation of catalogues: its halves, its stress test, and its aim on the real data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from evals.catalogue import (
    ToolQuery,
    all_tools,
    measured,
    missed,
    plain_bm25,
    queries,
    rows_of,
    systems,
)
from evals.engine.rows import Row
from evals.planning.data import folder
from evals.planning.effort import Skipped
from tests.agents.catalogue.made_up import ROWS
from weft.agents.catalogue import Catalogue, CatalogueIndex, LexicalChooser, read_catalogue
from weft.agents.catalogue.choice import ToolChoice

ASKED = [
    ToolQuery("How much rain does the town expect?", frozenset({"getRainForecast"})),
    ToolQuery("Book a train, then find a hotel.", frozenset({"bookTrain", "findHotel"})),
    ToolQuery("Convert the money of a friend.", frozenset({"convertMoney"})),
    ToolQuery("Which storms were there in a year?", frozenset({"pastStorms"})),
    ToolQuery("Nothing that anybody has a name for.", frozenset({"getWindForecast"})),
]


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    path = tmp_path / "tools.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return read_catalogue(path)


def figure(rows: Sequence[Row], case: str, system: str, metric: str) -> float:
    [found] = [row for row in rows if (row.case, row.system, row.metric) == (case, system, metric)]
    assert found.value is not None
    return found.value


def test_reworded_queries_have_no_word_of_the_names() -> None:
    assert ASKED[1].reworded() == "a then a"
    assert ASKED[0].reworded() == "How much does the town expect?"
    assert {one.half for one in ASKED} == {"development", "test"}


def test_figures_of_a_system(catalogue: Catalogue) -> None:
    some = ToolChoice(("bookTrain",), 10, 5)
    rows = measured("c", "s", [(ASKED[1], some), (ASKED[0], ToolChoice((), 0))], 100)
    assert [(row.metric, row.value) for row in rows] == [
        ("queries", 2),
        ("found_macro", 0.25),
        ("found_micro", pytest.approx(1 / 3)),
        ("complete", 0.0),
        ("tools", 0.5),
        ("tokens", 7.5),
        ("most_tokens", 15),
        ("tokens_share", 0.075),
    ]


def test_every_system_has_its_rows_and_holds_its_limit(catalogue: Catalogue) -> None:
    rows = rows_of(catalogue, ASKED)
    names = [name for name, _, _ in systems(catalogue)]
    assert len(names) == len(set(names)) == 17
    assert len(rows) == 4 + len(names) * 4 * 8
    assert figure(rows, "test", "all_tools", "found_micro") == 1
    for name, _, share in systems(catalogue):
        if share < 1:
            most = figure(rows, "test", name, "most_tokens")
            assert most <= share * catalogue.tokens


def test_baselines_and_what_is_missed(catalogue: Catalogue) -> None:
    assert len(all_tools(catalogue)("", 0).tools) == 6
    assert plain_bm25(catalogue, 1)("a train", 0).tools == ("bookTrain",)
    assert plain_bm25(catalogue)("a train", 0).tools == ()
    assert plain_bm25(catalogue)("a train", 10_000).tools[0] == "bookTrain"
    assert ("Nothing that anybody has a name for.", "getWindForecast") in missed(catalogue, ASKED)


def test_the_aim_is_reached_on_the_data() -> None:
    try:
        path = folder("programs/toolcatalogue") / "tools.jsonl"
        asked = [one for one in queries() if one.half == "test"][::8]
    except Skipped as reason:
        pytest.skip(str(reason))
    catalogue = read_catalogue(path)
    chooser = LexicalChooser(CatalogueIndex(catalogue))
    limit = catalogue.tokens // 20
    made = [(one, chooser.choice(one.text, limit)) for one in asked]
    rows = measured("test", "lexical", made, catalogue.tokens)
    assert figure(rows, "test", "lexical", "found_micro") >= 0.95
    assert figure(rows, "test", "lexical", "tokens_share") <= 0.05
