"""The evaluation of diffusion models on the smallest questions: pairing, means, pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from evals.diffusion import caches, lists, one_step, summary, trained, twin
from evals.diffusion.asking import Answered, answered, questions
from evals.diffusion.models import adapter
from evals.diffusion.models import twin as network
from evals.diffusion.systems import SEQUENTIAL, System, systems
from evals.diffusion.timing import time_rows
from evals.engine.rows import Lookup, Row
from evals.reasoning.plot import draw
from weft.core.errors import InternalError
from weft.core.values import Lossy
from weft.decoding.decoders import parse_decode
from weft.decoding.diffusion.denoising import DenoisingCounters
from weft.decoding.diffusion.oracle.languages import DETERMINISTIC, FREE
from weft.decoding.options import format_decoder
from weft.decoding.sampling import SamplingParams
from weft.training.diffusion.list_model.questions import is_held_out

GREEDY, SAMPLED = SamplingParams(0.0), SamplingParams(1.0)
MODULES = {"lists": lists, "one_step": one_step, "trained": trained, "caches": caches}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_questions_are_held_out_and_the_first_of_many_are_those_of_few() -> None:
    many = questions("sort", (3, 4), 9, seed=5)
    assert all(is_held_out(one) for one in many)
    assert [len(one.items) for one in many[:4]] == [3, 4, 3, 4]
    assert questions("sort", (3, 4), 4, seed=5) == many[:4]
    assert questions("sort", (3, 4), 4, seed=6) != many[:4]


def test_the_twin_writes_the_same_alone_and_in_company() -> None:
    asked = questions("shuffle", (3, 4, 5), 7)
    together = twin.written(network(), asked, SAMPLED)
    alone = [twin.timed(network(), one, SAMPLED, seed) for seed, one in enumerate(asked)]
    assert [one.ids for one in together] == [one.ids for one in alone]
    assert all(one.counters.forwards == len(one.ids) + 1 for one in together)
    assert all(one.counters.kept == len(one.ids) for one in together)
    assert all(one.seconds > 0 for one in alone)


def test_the_twin_copies() -> None:
    found = twin.written(network(), questions("copy", (3, 4, 5), 6), GREEDY)
    assert [one.ids for one in found] == [one.question.items for one in found]


def test_few_answers_are_the_first_of_many() -> None:
    asked = questions("shuffle", (3, 4, 5), 6)
    plugs = System("threshold", "threshold").plugs(adapter("full").traits)
    many = answered(adapter("full"), plugs, asked, SAMPLED)
    few = answered(adapter("full"), plugs, asked[:2], SAMPLED)
    assert [one.ids for one in few] == [one.ids for one in many[:2]]


def test_of_a_system_that_fails_no_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> Answered:
        raise InternalError("broken")

    both = [System(SEQUENTIAL, SEQUENTIAL), System("no such decoder", "none")]
    asked = questions("copy", (3,), 2)
    rows = list(time_rows("list_copy", both, asked, GREEDY))
    assert {row.system for row in rows} == {SEQUENTIAL, twin.NAME}
    assert Lookup(rows)("list_copy", SEQUENTIAL, "wall_ratio") == 1.0
    monkeypatch.setattr("evals.diffusion.timing.timed", failing)
    rows = list(time_rows("list_copy", both, asked, GREEDY))
    assert [(row.system, row.metric, row.value) for row in rows] == [
        (twin.NAME, "wall_to_twin", 1.0)
    ]


def test_every_preset_that_needs_no_other_model_is_asked() -> None:
    names = [one.name for one in systems()]
    assert names[0] == SEQUENTIAL
    assert len(names) == len(set(names))
    assert {*lists.OFTEN, *trained.TRAINED, "threshold_1.0"} <= set(names)


def test_every_system_can_be_asked_for_as_people_write_it() -> None:
    for system in systems():
        spec = parse_decode(format_decoder(Lossy(system.preset, tuple(system.options.items()))))
        assert (spec.method, dict(spec.options)) == (system.preset, dict(system.options))


def test_gains_are_of_the_same_questions() -> None:
    def said(ids: tuple[int, ...] | None, passes: int) -> Answered:
        question = questions("copy", (3,), 1)[0]
        counters = DenoisingCounters(kept=3)
        counters.passes["denoise"] = passes
        return Answered(question, question.items if ids is None else ids, counters)

    found = {
        ("list_copy", SEQUENTIAL): [said(None, 4), said(None, 4), said((), 4)],
        ("list_copy", "adaptive"): [said(None, 1), said((1,), 2), said((1,), 1)],
    }
    figures = Lookup(lists.compared(found))
    assert figures("all_lists", "adaptive", "worst_validity_gain") == pytest.approx(-1 / 3)
    assert figures("all_lists", "adaptive", "worst_z") == -1.0
    assert figures("independent_lists", "adaptive", "least_tokens_per_forward") == 9 / 4
    assert figures("independent_lists", "adaptive", "least_ratio_to_sequential") == 3.0


def _rows() -> list[Row]:
    """As measured: `adaptive` is valid where one answer is right, and half the time elsewhere."""
    rows = [Row("all_lists", "adaptive", "worst_z", -1.5, "standard errors")]
    for task in (*DETERMINISTIC, *FREE):
        valid = 1.0 if task in DETERMINISTIC else 0.5
        rows.append(Row(f"list_{task}", "adaptive", "validity", valid, "share"))
        rows.append(Row(f"list_{task}", "adaptive", "tokens_per_forward", 4 * valid, "tokens"))
    return rows


def test_the_table_has_means_of_both_kinds_of_operations() -> None:
    lines = summary.table(_rows()).splitlines()
    told = next(line for line in lines if line.startswith("adaptive"))
    assert told.split() == ["adaptive", "1.000", "4.000", "-", "-", "0.500", "2.000", "-", "-"]
    assert lines[-1] == "all_lists worst_z: -1.500 standard errors"


def test_a_mean_over_operations_that_were_not_all_asked_is_none() -> None:
    figures = Lookup(_rows()[:-1])  # the last operation lacks a figure
    assert summary.mean(figures, "adaptive", "tokens_per_forward", FREE) is None
    assert summary.mean(figures, "adaptive", "validity", FREE) == 0.5


def test_what_was_not_measured_is_not_drawn(tmp_path: Path) -> None:
    plot = pytest.importorskip("matplotlib.pyplot")
    _, axes = plot.subplots()
    summary.panel(axes, Lookup(_rows()))
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn["adaptive"] == [[2.0, 0.5]]
    plot.close("all")
    some = Row("all_lists", "learn2pd", "forwards", 3.0, "forwards")
    found = [(name, [some]) for name in MODULES]
    assert draw(found, tmp_path / "all.png", MODULES.__getitem__)
    assert (tmp_path / "all.png").stat().st_size > 10_000
