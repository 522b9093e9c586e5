"""`python -m evals.gpu`: a dry run walks every section; one that fails leaves the others alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from evals.engine.rows import Lookup, Row
from evals.gpu import __main__ as command
from evals.gpu import diffusion, engine, sections
from evals.gpu.bench import Bench, real_bench
from evals.gpu.sections import SECTIONS, failed, found_by
from evals.gpu.vllm import CANVAS, filled
from evals.planning.effort import Skipped
from weft.decoding.diffusion.catalogue import NAMES as DIFFUSION
from weft.decoding.speculative.presets import NAMES as SPECULATIVE
from weft.testing import FakeModel
from weft.training.diffusion.spec import KINDS as DIFFUSION_KINDS
from weft.training.drafters.spec import KINDS as DRAFTER_KINDS

NO_BENCH = Bench("cuda", Path(), Path(), Path())


def run(monkeypatch: pytest.MonkeyPatch, *line: str) -> int:
    monkeypatch.setattr("sys.argv", ["evals.gpu", *line])
    return command.main()


def test_a_dry_run_walks_every_section(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, plot = tmp_path / "gpu.json", tmp_path / "gpu.png"
    drawn = ("--plot", str(plot)) if find_spec("matplotlib") else ()
    assert run(monkeypatch, "--dry-run", "--json", str(file), *drawn) == 0
    assert plot.exists() == bool(drawn)
    kept = json.loads(file.read_text("utf-8"))
    assert "dry run" in kept["environment"]["device"]
    rows = [Row(**row) for row in kept["rows"]]
    table = capsys.readouterr().out
    assert all(row.metric.rstrip() in table for row in rows)
    figures = Lookup(rows)
    for dtype in ("bfloat16", "float32"):
        told = {system for case, system in figures.of("wall_ratio") if case.endswith(dtype)}
        assert told == set(SPECULATIVE), "no decoder is left out"
    assert {system for _, system in figures.of("tokens_per_forward")} == set(DIFFUSION)
    trained = {row.system for row in rows if row.case == "trainers"}
    assert trained == {*DRAFTER_KINDS, *DIFFUSION_KINDS}
    assert figures("vllm", "vllm weft", "command_arguments")
    assert figures("sevens_equal_tokens_scripted", "majority", "accuracy") == 1.0
    assert {row.case.partition(",")[0] for row in rows} >= {"engine", "decoders", "diffusion"}


def test_a_section_that_fails_says_why_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def breaks(_bench: Bench) -> Iterator[Row]:
        yield Row("engine, 1 greedy", "graphs", "tokens_per_s", 1.0, "tokens/s")
        raise RuntimeError("out of memory")

    monkeypatch.setattr(engine, "rows", breaks)
    monkeypatch.setattr(diffusion, "rows", lambda _bench: iter([Row("d", "x", "y", 2.0, "")]))
    file = tmp_path / "gpu.json"
    line = ("--dry-run", "--only", "engine,diffusion", "--json", str(file))
    assert run(monkeypatch, *line) == 1
    first, why, other = json.loads(file.read_text("utf-8"))["rows"]
    assert first["value"] == 1.0, "what was measured before stays"
    assert why["metric"] == "failed: RuntimeError: out of memory"
    assert other["value"] == 2.0


def test_what_cannot_be_measured_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(_bench: Bench) -> Iterator[Row]:
        raise Skipped("there is no vLLM")

    monkeypatch.setattr(engine, "rows", lacks)
    _, rows = found_by("engine", NO_BENCH)
    assert [row.metric for row in rows] == ["skipped: there is no vLLM"]
    assert not failed(rows)


def test_without_a_gpu_nothing_is_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert run(monkeypatch) == 2
    assert "--dry-run" in capsys.readouterr().err


def test_a_model_that_is_not_here_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(Skipped, match="no-such-model"), real_bench("local:no-such-model", 1):
        raise AssertionError("there is nothing to run on")


def test_a_form_is_filled_in_by_a_server() -> None:
    rows = asyncio.run(filled(FakeModel(['{"name": "Ann", "age": 3}']), times=2))
    figures = Lookup(rows)
    assert (figures("vllm", CANVAS, "wall_ms") or 0) > 0
    assert (figures("vllm", CANVAS, "tokens_per_s") or 0) > 0


def test_every_section_has_rows() -> None:
    assert all(callable(sections.module(name).rows) for name in SECTIONS)
