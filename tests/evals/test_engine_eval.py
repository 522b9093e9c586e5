"""The engine's evaluation on small graphs: every node runs, every row has its shape."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

import pytest

from evals.engine import peers
from evals.engine.cases import CASES, Case, Tally, chain, fanout, layered
from evals.engine.evaluation import Effort, Evaluation, Skipped
from evals.engine.growth import SIZES, fit
from evals.engine.plot import draw
from evals.engine.report import table
from evals.engine.rounds import Contestant, Pace, Timing, measure
from evals.engine.rows import Row, growth_rows, memory_rows, timing_rows
from evals.engine.systems import load

ONE_ROUND = Pace(seconds=0.0, least=1, most=1)
OURS = ("weft", "weft_timeout", "asyncio")
METRICS = {"median_ms", "p10_ms", "p90_ms", "cpu_ms", "build_ms", "rounds"}


@pytest.fixture(autouse=True)
def _no_collection(monkeypatch):
    """What a worker of thousands of tests has in memory is not searched before each sample, and
    stays frozen for the tests that follow.
    """
    for name in ("collect", "freeze", "unfreeze"):
        monkeypatch.setattr(f"gc.{name}", lambda: 0)


def rows_of(case: Case) -> list[Row]:
    return timing_rows(asyncio.run(measure(case, OURS, ONE_ROUND)))


@pytest.mark.parametrize("case", [chain("a", 5), fanout("b", 5), layered("c", 60, 6)])
def test_a_round_gives_every_metric_of_every_system(case):
    rows = rows_of(case)
    for system in OURS:
        found = {row.metric: row for row in rows if row.system == system}
        ratio = set() if system == "asyncio" else {"ratio_to_asyncio"}
        assert found.keys() == METRICS | ratio
        assert {row.case for row in found.values()} == {case.name}
        assert all(row.value is not None and row.value >= 0 for row in found.values())
    assert {row.unit for row in rows} == {"ms", "rounds", "x"}


@pytest.mark.parametrize(("sleeps", "ratio"), [(False, 3.0), (True, 5.0)])
def test_ratios_and_spread_come_from_the_samples_of_one_round(sleeps, ratio):
    wall = {"weft": [10.0, 2.0, 9.0], "asyncio": [2.0, 1.0, 1.0]}
    cpu = {"weft": [6.0, 2.0, 9.0], "asyncio": [2.0, 1.0, 1.0]}
    timing = Timing("a", sleeps, dict.fromkeys(wall, 0.0), wall, cpu)
    found = {(row.system, row.metric): row.value for row in timing_rows(timing)}
    assert found["weft", "median_ms"] == 9.0
    assert found["weft", "cpu_ms"] == 6.0
    assert found["weft", "ratio_to_asyncio"] == ratio  # the median of each round's, not of medians
    assert found["weft", "p10_ms"] == pytest.approx(3.4)
    assert found["weft", "p90_ms"] == pytest.approx(9.8)


def test_the_cases_are_those_of_the_issue():
    sizes = {name: len(case.tasks) for name, case in CASES.items()}
    assert sizes == {
        "chain_100": 100,
        "fanout_100": 102,
        "fanout_1000": 1_002,
        "fanout_10000": 10_002,
        "layered_10000": 10_000,
        "skewed": 8,
    }
    longest: list[float] = []
    for task in CASES["skewed"].tasks:
        longest.append(task.sleep_s + max((longest[p] for p in task.parents), default=0.0))
    assert longest[-1] == pytest.approx(0.5)


@pytest.mark.parametrize(("nodes", "layers"), [(60, 6), (61, 6), (20, 8), (1_000, 10)])
def test_a_layered_graph_has_one_source_and_one_sink(nodes, layers):
    case = layered("x", nodes, layers)
    assert len(case.tasks) == nodes
    assert [place for place, task in enumerate(case.tasks) if not task.parents] == [0]
    assert [place for place, after in enumerate(case.children()) if not after] == [nodes - 1]
    assert all(parent < place for place, t in enumerate(case.tasks) for parent in t.parents)
    assert layered("x", nodes, layers) == case
    assert layered("x", nodes, layers, seed=2) != case


def test_skipped_work_is_noticed(monkeypatch):
    def lazy(case: Case, tally: Tally):
        async def program() -> None:
            await tally.work(0.0)

        return program

    monkeypatch.setattr("evals.engine.rounds.load", lambda _: lazy)
    with pytest.raises(RuntimeError, match="ran 1 nodes where the graph has 3"):
        asyncio.run(Contestant("lazy", chain("a", 3)).sample())


def test_work_left_behind_is_noticed(monkeypatch):
    def hasty(case: Case, tally: Tally):
        async def program() -> None:
            await load("asyncio")(case, tally)()
            tasks.append(asyncio.create_task(asyncio.Event().wait()))

        return program

    tasks: list[asyncio.Task[bool]] = []
    monkeypatch.setattr("evals.engine.rounds.load", lambda _: hasty)
    with pytest.raises(RuntimeError, match="left tasks behind"):
        asyncio.run(Contestant("hasty", chain("a", 3)).sample())


def test_what_cannot_be_measured_is_a_row_with_the_reason(monkeypatch):
    def no_peers():
        raise peers.PeersUnavailable("no index")

    def child(_, module, *arguments, limit_s):
        if arguments == ("asyncio", "chain_100"):
            raise Skipped(f"no result within {limit_s:g} s")
        if module == "growth":
            return asdict(fit([(n, n) for n in SIZES]))
        return {"peak_bytes": 2, "added_bytes": 1}

    monkeypatch.setattr(peers, "interpreter", no_peers)
    monkeypatch.setattr(Evaluation, "_child", child)
    monkeypatch.setattr("evals.engine.evaluation.CASES", {"chain_100": CASES["chain_100"]})
    evaluation = Evaluation(Effort(ONE_ROUND, limit_s=7.0))
    evaluation.run()
    assert {row.system: row.metric for row in evaluation.rows if row.value is None} == {
        "asyncio": "skipped: no result within 7 s",
        "langgraph": "skipped: not installed: no index",
        "pydantic_graph": "skipped: not installed: no index",
        "hamilton": "skipped: not installed: no index",
    }
    assert {row.metric for row in evaluation.rows if row.system == "weft"} > METRICS


def test_straight_memory_has_no_residual():
    growth = fit([(1_000 * n + 7, 500 * n) for n in SIZES])
    assert growth.bytes_per_node == pytest.approx(1_500)
    assert growth.graph_bytes_per_node == pytest.approx(1_000)
    assert growth.residual == pytest.approx(0.0, abs=1e-9)
    assert fit([(n * n, 0) for n in SIZES]).residual > 0.02


def test_the_table_says_what_is_there_and_what_is_not():
    rows = rows_of(chain("chain_100", 3))
    rows += memory_rows("chain_100", "weft", 30_000_000, 1_500_000)
    rows += growth_rows(fit([(n, n) for n in SIZES]))
    rows.append(Row("chain_100", "hamilton", "skipped: not installed", None, ""))
    text = table(rows)
    assert "hamilton       skipped: not installed" in text
    assert "2 bytes per node (1 the graph, 1 the run)" in text
    assert "met      layered_10000 bytes_per_node_residual" in text
    assert "UNKNOWN  chain_100 ratio_to_langgraph: not measured" in text


def test_the_plot_is_drawn_with_gaps(tmp_path):
    rows = rows_of(chain("a", 3))
    draw(rows, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
