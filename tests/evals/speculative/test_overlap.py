"""Who works when, on a virtual clock: the figures of `evals.speculative.overlap` are repeatable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from evals.speculative import overlap
from evals.speculative.pipeinfer.stages import cut
from evals.speculative.pipeinfer.timeline import busy_s, drawn, overlap_s
from tests.serving.local.conftest import tiny_path
from tests.serving.local.playback import EXACT
from weft.decoding.network.network import Network

__all__ = ["tiny_path"]
PROMPT = (5, 60, 61, 62, 7, 60, 61)
MOST = 24


@pytest.fixture(scope="module")
def machine(tiny_path: Path) -> overlap.Machine:
    network = Network.load(tiny_path, EXACT)
    made = overlap.Machine(network, network.share(layers=2), cut(network, 2))
    made.draft_s, made.target_s, made.virtual = 0.25, 1.0, True
    return made


@pytest.fixture(scope="module")
def runs(machine: overlap.Machine) -> dict[str, overlap.Run]:
    return {name: overlap._run(name, machine, PROMPT, MOST) for name in overlap.SYSTEMS}


def test_all_systems_write_the_same(runs: dict[str, overlap.Run]) -> None:
    assert len({run.tokens for run in runs.values()}) == 1
    assert runs["autoregressive"].forwards == MOST


def test_serial_drafts_overlap_with_nothing(runs: dict[str, overlap.Run]) -> None:
    for name in ("autoregressive", "draft_model"):
        assert overlap_s(runs[name].draft, runs[name].target) == 0.0


@pytest.mark.parametrize("name", ["pearl", "llmcad", "pipeinfer"])
def test_the_others_work_side_by_side(runs: dict[str, overlap.Run], name: str) -> None:
    run = runs[name]
    assert overlap_s(run.draft, run.target) / busy_s(run.target) > 0.5
    assert run.thrown_away > 0
    assert {"#", "x"} <= set(drawn(run.intervals))


def test_a_timeline_is_the_same_every_time(
    machine: overlap.Machine, runs: dict[str, overlap.Run]
) -> None:
    for name in overlap.SYSTEMS:
        again = overlap._run(name, machine, PROMPT, MOST)
        assert again == runs[name]


def test_pearl_is_never_slower_than_waiting_for_both(runs: dict[str, overlap.Run]) -> None:
    """With a device each a round takes the longer of the two, not their sum."""
    pearl = runs["pearl"]
    assert pearl.seconds < busy_s(pearl.draft) + busy_s(pearl.target)


def test_the_rows(machine: overlap.Machine) -> None:
    def answers() -> Iterator[dict[str, overlap.Run]]:
        yield {name: overlap._run(name, machine, PROMPT, 12) for name in overlap.SYSTEMS}

    found = {(row.system, row.metric): row.value for row in overlap._case_rows("c", answers())}
    for name in overlap.SYSTEMS:
        assert found[name, "identical_outputs"] == 1.0
    assert found["autoregressive", "wall_ratio"] == 1.0
    assert found["autoregressive", "cancelled_tokens"] == 0


def test_threads_write_the_same(tiny_path: Path, runs: dict[str, overlap.Run]) -> None:
    network = Network.load(tiny_path, EXACT)
    real = overlap.Machine(network, network.share(layers=2), cut(network, 2))
    for name in overlap.SYSTEMS:
        run = overlap._run(name, real, PROMPT, MOST)
        assert run.tokens == runs[name].tokens
        assert run.target
