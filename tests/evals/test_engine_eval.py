"""The engine's evaluation on small cases: every node runs, every row has its shape."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

import weft
from evals.engine import documents, first_run, peers
from evals.engine.cases import (
    CASES,
    Case,
    case_named,
    chain,
    conversation,
    fanout,
    layered,
    mapped,
    skewed,
)
from evals.engine.evaluation import QUICK, Evaluation
from evals.engine.growth import SIZES, fit
from evals.engine.limits import LIMITS, Limit
from evals.engine.plot import draw
from evals.engine.profile import PARTS, profiled
from evals.engine.report import table
from evals.engine.rounds import Pace, Skipped, Timing, measure, measure_together
from evals.engine.rows import Row, growth_rows, timing_rows
from evals.engine.systems import SYSTEMS, on_weft_flow, on_weft_yaml, tools
from evals.engine.worker import Contestant, Ready, Sample

ONE_ROUND = Pace(seconds=0.0, least=1, most=1, limit_s=60.0)
OURS = [name for name, system in SYSTEMS.items() if system.home == "weft"]
SMALL = [chain("a", 4), fanout("b", 3), layered("c", 30, 4), mapped("d", 3), conversation("e", 3)]


@pytest.fixture(autouse=True)
def _no_collection(monkeypatch):
    """What a worker of thousands of tests has in memory is not searched before each sample."""
    monkeypatch.setattr("gc.collect", lambda: 0)


def sampled(system: str, case: Case, folder: Path) -> Sample:
    with asyncio.Runner() as runner:
        return Contestant(system, case, folder, runner).sample(2)


class Clockwork:
    """Takes part in rounds without running anything."""

    sample_s = 0.0

    def __init__(self, name: str, log: list[str], fails_at: int = 0) -> None:
        self.name, self.log, self.fails_at, self.closed = name, log, fails_at, False

    def sample(self) -> Sample:
        self.log.append(self.name)
        if self.log.count(self.name) == self.fails_at:
            raise Skipped("it broke")
        return Sample(len(self.log), 1.0)

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.shape)
@pytest.mark.parametrize("system", OURS)
def test_every_task_runs_and_the_outputs_are_those_of_the_case(system, case, tmp_path):
    assert sampled(system, case, tmp_path).wall_s > 0


@pytest.mark.parametrize("case", [*SMALL, skewed()], ids=lambda case: case.name)
def test_the_file_says_what_the_flow_says(case, tmp_path):
    path = on_weft_yaml.write_workflow(case, tmp_path, Path(str(tools.__file__)))
    file, flow = weft.load(path), on_weft_flow.flow_of(case)
    assert file.nodes == flow.nodes
    assert file.outputs == flow.outputs


def test_the_cases_are_those_of_the_issue():
    sizes = {name: len(case_named(name).tasks) for name in CASES}
    assert sizes == {
        "chain_100": 100,
        "fanout_100": 102,
        "fanout_1000": 1_002,
        "map_1000": 1_000,
        "skewed": 8,
        "conversation_50": 50,
        "layered_10000": 10_000,
    }
    longest: list[float] = []
    for task in skewed().tasks:
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


def test_skipped_work_is_noticed(monkeypatch, tmp_path):
    async def lazy() -> None: ...

    monkeypatch.setattr("evals.engine.worker.load", lambda _: lambda *_: lazy)
    with pytest.raises(RuntimeError, match="ran 0 nodes where the graph has 8"):
        sampled("lazy", chain("a", 4), tmp_path)


def test_work_left_behind_is_noticed(monkeypatch, tmp_path):
    async def hasty() -> None:
        asyncio.get_running_loop().create_task(asyncio.sleep(0))

    monkeypatch.setattr("evals.engine.worker.load", lambda _: lambda *_: hasty)
    with pytest.raises(RuntimeError, match="left tasks behind"):
        sampled("hasty", Case("a", "chain", ()), tmp_path)


def test_asyncio_is_first_and_last_in_every_round_and_every_system_takes_part():
    log: list[str] = []
    timing = Timing("a")
    names = ("weft_flow", "asyncio", "langgraph")
    pace = Pace(seconds=0.0, least=3, most=3, limit_s=1.0)
    measure_together(timing, {name: Clockwork(name, log) for name in names}, pace)
    rounds = [log[start : start + 4] for start in range(0, 12, 4)]
    assert all(one[0] == one[-1] == "asyncio" for one in rounds)
    assert all(set(one) == set(names) for one in rounds)
    assert {name: len(samples) for name, samples in timing.wall_ms.items()} == dict.fromkeys(
        names, 3
    )
    assert timing.wall_ms["asyncio"][0] == (1 + 4) / 2 * 1e3


def test_a_system_that_breaks_is_left_out_from_there_on_with_the_reason():
    log: list[str] = []
    timing = Timing("a")
    broken, whole = Clockwork("dbos", log, fails_at=2), Clockwork("asyncio", log)
    pace = Pace(seconds=0.0, least=3, most=3, limit_s=1.0)
    measure_together(timing, {"dbos": broken, "asyncio": whole}, pace)
    assert broken.closed
    assert log.count("dbos") == 2
    assert list(timing.wall_ms) == ["asyncio"]
    assert "skipped: in round 2: it broke" in {row.metric for row in timing_rows(timing)}


def test_processes_are_measured_and_what_is_not_there_is_said(monkeypatch):
    def interpreter(home: str) -> str:
        if home != "weft":
            raise peers.PeersUnavailable("no index")
        return known(home)

    known = peers.interpreter
    monkeypatch.setattr(peers, "interpreter", interpreter)
    timing = measure("chain_3", ["asyncio", "weft_flow", "langgraph", "prefect"], ONE_ROUND)
    rows = timing_rows(timing)
    found = {(row.system, row.metric): row.value for row in rows}
    assert found["langgraph", "skipped: not installed: no index"] is None
    assert found["prefect", "skipped: not installed: no index"] is None
    stored = found["weft_flow", "bytes"]
    assert stored is not None
    assert stored >= 0
    assert found["weft_flow", "ratio_to_asyncio"] == pytest.approx(
        timing.wall_ms["weft_flow"][0] / timing.wall_ms["asyncio"][0]
    )
    assert ("asyncio", "bytes") not in found


@pytest.mark.slow
@pytest.mark.parametrize("case", ["chain_3", "fanout_3", "map_3", "conversation_3"])
def test_every_peer_runs_every_case_that_it_has_a_form_of(case):
    """Installs the peers where they are not yet."""
    pace = Pace(seconds=0.0, least=1, most=1, limit_s=180.0)
    timing = measure(case, [name for name in SYSTEMS if name not in OURS], pace)
    installed = {name for name, why in timing.skipped.items() if "not installed" not in why}
    formless = set() if case == "conversation_3" else {"langgraph_delta"}
    assert installed == formless | ({"hamilton"} if case == "map_3" else set())


def test_a_process_that_says_nothing_in_time_is_ended():
    timing = measure("chain_3", ["asyncio"], Pace(0.0, 1, 1, limit_s=0.0))
    assert timing.skipped == {"asyncio": "no result within 0 s"}


def test_a_first_run_is_a_process_from_start_to_end(monkeypatch):
    monkeypatch.setattr(first_run, "_HOMES", {"asyncio": "weft", "weft_yaml": "weft"})
    timing = first_run.first_runs(ONE_ROUND)
    assert not timing.skipped
    assert timing.wall_ms["weft_yaml"][0] > timing.wall_ms["asyncio"][0] > 0


def test_a_first_run_that_fails_says_why(tmp_path):
    def command(_: int) -> list[str]:
        return [peers.interpreter("weft"), "-c", "raise SystemExit('no chain')"]

    with pytest.raises(Skipped, match="exit code 1: no chain"):
        first_run.FreshProcess(command, tmp_path, 60.0)


def test_ratios_and_spread_come_from_the_samples_of_one_round():
    wall = {"weft_flow": [10.0, 2.0, 9.0], "asyncio": [2.0, 1.0, 1.0]}
    cpu = {"weft_flow": [6.0, 2.0, 9.0], "asyncio": [2.0, 1.0, 1.0]}
    ready = {"weft_flow": Ready(1, 0.1, 7.0, 3, 2)}
    timing = Timing("a", ready, wall, cpu, {"weft_flow": 4096.0})
    found = {(row.system, row.metric): row.value for row in timing_rows(timing)}
    assert found["weft_flow", "median_ms"] == 9.0
    assert found["weft_flow", "cpu_ms"] == 6.0
    assert found["weft_flow", "ratio_to_asyncio"] == 5.0  # the median of each round's
    assert found["weft_flow", "cpu_ratio_to_asyncio"] == 3.0
    assert found["weft_flow", "p10_ms"] == pytest.approx(3.4)
    assert found["weft_flow", "p90_ms"] == pytest.approx(9.8)
    assert found["weft_flow", "build_ms"] == 7.0
    assert found["weft_flow", "added_memory_bytes"] == 2
    assert found["weft_flow", "bytes"] == 4096.0


def test_a_limit_is_met_or_not_or_was_not_measured():
    limit = Limit("chain_100", "weft_flow", "ratio_to_asyncio", 12.0)
    assert limit.line(12.0).endswith("measured       12   met")
    assert limit.line(12.1).endswith("measured     12.1   not met")
    assert limit.line(None).endswith("not measured")


def test_every_limit_is_of_something_that_is_measured():
    metrics = {"median_ms", "bytes_per_node_residual"}
    metrics |= {
        f"ratio_to_{name}" for name in ("asyncio", "langgraph", "langgraph_sqlite", "import_typer")
    }
    for limit in LIMITS:
        assert limit.system in {*SYSTEMS, "weft_cli"}
        assert limit.case in {*CASES, first_run.FIRST_RUN, first_run.VERSION}
        assert limit.metric in metrics


def test_a_large_case_is_not_timed_in_a_quick_evaluation_and_that_is_said(monkeypatch):
    monkeypatch.setattr("evals.engine.evaluation._grown", list)
    evaluation = Evaluation(QUICK)
    evaluation.run(["layered_10000"])
    reason = "skipped: not timed with --quick"
    assert evaluation.rows == [Row("layered_10000", "", reason, None, "")]


def test_straight_memory_has_no_residual():
    growth = fit([(1_000 * n + 7, 500 * n) for n in SIZES])
    assert growth.bytes_per_node == pytest.approx(1_500)
    assert growth.graph_bytes_per_node == pytest.approx(1_000)
    assert growth.residual == pytest.approx(0.0, abs=1e-9)
    assert fit([(n * n, 0) for n in SIZES]).residual > 0.02


def test_a_document_is_measured_before_and_while_it_runs(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(documents.TOOLS)
    (tmp_path / "large.yaml").write_text(documents.document(5))
    found = documents.worker(tmp_path, 5)
    assert set(found) == set(documents.METRICS)
    assert documents.residual([100.0 + size for size in documents.SIZES]) < 1e-9
    assert documents.residual([float(size) ** 2 for size in documents.SIZES]) > 0.05


def test_the_table_says_what_is_there_and_what_is_not(tmp_path):
    draw_of = random.Random(1)
    samples = {name: [draw_of.uniform(1, 2)] for name in ("asyncio", "weft_flow_none")}
    rows = timing_rows(Timing("chain_100", {}, samples, samples, {}, {"dbos": "not installed"}))
    rows += growth_rows(fit([(n, n) for n in SIZES]))
    text = table(rows)
    assert "dbos               skipped: not installed" in text
    assert "2 bytes per node (1 the graph, 1 the run)" in text
    lines = text.splitlines()
    (met,) = [line for line in lines if line.startswith("chain_100      weft_flow_none")]
    assert met.endswith("met")
    (unknown,) = [line for line in lines if line.startswith("chain_100      weft_engine")]
    assert unknown.endswith("not measured")
    draw(rows, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("place", [place for _, place in PARTS if "/" in place])
def test_every_part_of_a_profile_is_a_place_of_the_sources(place: str) -> None:
    root = Path(__file__).parents[2]
    assert any(str(path.relative_to(root)).startswith(place) for path in root.glob("weft/**/*.py"))


def test_a_profile_gives_every_call_to_one_part() -> None:
    rows = profiled("chain_3", "weft_flow_none")
    for metric in ("calls_per_node", "share"):
        by_system = {row.system: row.value or 0 for row in rows if row.metric == metric}
        whole = by_system.pop("weft_flow_none")
        assert sum(by_system.values()) == pytest.approx(whole)
        assert by_system["weft_flow_none: scheduler and runner"] > 0
