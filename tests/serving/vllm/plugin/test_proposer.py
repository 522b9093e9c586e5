"""weft's proposer in a vLLM that is not there: its shapes, its soft failures, who the rows are."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from weft.serving.vllm.drafting.requests import LABEL, Constraint, RowFacts
from weft.serving.vllm.drafting.shared_texts import share_text
from weft.serving.vllm.plugin.proposer import (
    RunnerBatch,
    WeftProposer,
    catch_runner,
    constraint_of,
    facts_of,
)
from weft.serving.vllm.supervise.processes import MARK, Identity, Mark
from weft.serving.vllm.supervise.state_folders import drafting_folder, forget

Make = Callable[..., WeftProposer]


class Runner:
    """As much of vLLM's runner as the proposer looks at."""

    def __init__(self, drafter: object, **requests: Any) -> None:
        self.drafter = drafter
        self.requests = requests
        self.input_batch = SimpleNamespace(req_ids=list(requests))

    def propose_draft_token_ids(self, ids: list[list[int]], new: int) -> list[list[int]]:
        table = np.zeros((len(ids), 64), np.int32)
        for row, text in enumerate(ids):
            table[row, : len(text)] = text
        counts = np.array([len(text) for text in ids], np.int32)
        assert isinstance(self.drafter, WeftProposer)
        return self.drafter.propose(
            [text[-new:] for text in ids], counts, table, slot_mappings=None
        )


def request(label: object = None, prompt: int = 1, **constraint: Any) -> SimpleNamespace:
    kinds = {"json": None, "grammar": None, "regex": None, **constraint}
    sampling = SimpleNamespace(
        extra_args=None if label is None else {LABEL: label},
        structured_outputs=SimpleNamespace(**kinds) if constraint else None,
    )
    return SimpleNamespace(sampling_params=sampling, num_prompt_tokens=prompt)


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a proposer in a serving, where vLLM's runner is `Runner`'s subclass."""
    module = ModuleType("vllm.v1.worker.gpu_model_runner")
    module.GPUModelRunner = type("GPUModelRunner", (Runner,), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for parent in ("vllm", "vllm.v1", "vllm.v1.worker"):
        monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
    monkeypatch.setenv("WEFT_STATE_DIR", str(tmp_path))
    monkeypatch.setenv(MARK, Mark("tiny-1", Identity.own()).text())

    def make(**settings: Any) -> WeftProposer:
        model = SimpleNamespace(model="tiny", max_model_len=64, get_vocab_size=lambda: 100)
        return WeftProposer(
            SimpleNamespace(
                speculative_config=SimpleNamespace(num_speculative_tokens=4),
                model_config=model,
                structured_outputs_config=SimpleNamespace(disable_any_whitespace=True),
                additional_config={"weft_drafting": settings},
            )
        )

    return make


def runner(proposer: object, **requests: Any) -> Any:
    return sys.modules["vllm.v1.worker.gpu_model_runner"].GPUModelRunner(proposer, **requests)


def test_it_drafts_and_loads_no_model(make: Make) -> None:
    proposer = make()
    proposer.load_model("a model", extra=1)
    assert runner(proposer, a=request()).propose_draft_token_ids([[1, 2, 3, 1, 2]], 1) == [
        [3, 1, 2, 3]
    ]


def test_rows_of_one_node_know_one_another(make: Make) -> None:
    batch = runner(make(), a=request("plan"), b=request("plan"))
    long = [9, *range(10, 62)]
    assert batch.propose_draft_token_ids([long, [8, 30, 31]], 52)[1] == [32, 33, 34, 35]


def test_what_another_program_tells_is_drafted(make: Make, tmp_path: Path) -> None:
    proposer = make()
    folder = drafting_folder("tiny-1")
    assert [path.name for path in folder.iterdir()] == [f"{os.getpid()}.sock"]
    assert asyncio.run(share_text(folder, "plan", [40, 41, 42, 43])) == 1
    batch = runner(proposer, a=request("plan"))
    for _ in range(10_000):
        if (draft := batch.propose_draft_token_ids([[1, 40, 41]], 1)) != [[]]:
            break
    assert draft == [[42, 43]]
    forget("tiny-1")
    assert not (tmp_path / "drafting" / "tiny-1").exists()


def test_a_later_server_remembers_where_it_was_asked_to(make: Make) -> None:
    batch = runner(make(remember=True), a=request("plan", prompt=1))
    batch.propose_draft_token_ids([[1, 40, 41, 42]], 3)
    batch.requests = {"b": request("plan")}
    batch.input_batch.req_ids = ["b"]
    batch.propose_draft_token_ids([[2]], 1)
    assert runner(make(remember=True), a=request("plan")).propose_draft_token_ids(
        [[7, 40, 41]], 1
    ) == [[42]]
    assert runner(make(), a=request("plan")).propose_draft_token_ids([[7, 40, 41]], 1) == [[]]


@pytest.mark.parametrize("settings", [{"depth": "deep"}, {"what": 1}])
def test_settings_that_are_none_are_the_usual_ones(
    make: Make, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    proposer = make(**settings)
    assert "takes its usual settings" in caplog.text
    assert runner(proposer, a=request()).propose_draft_token_ids([[1, 2, 3, 1, 2]], 1) != [[]]


def test_without_a_serving_nor_a_runner_it_drafts_all_the_same(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(MARK)
    monkeypatch.delattr(sys.modules["vllm.v1.worker.gpu_model_runner"], "GPUModelRunner")
    proposer = make()
    assert "does without the names of requests" in caplog.text
    assert Runner(proposer).propose_draft_token_ids([[1, 2, 3, 1, 2]], 1) == [[3, 1, 2, 3]]


def test_a_folder_that_cannot_be_made_is_said_and_done_without(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WEFT_STATE_DIR", str(tmp_path / "file"))
    proposer = make(remember=True)
    assert "does without a channel" in caplog.text
    assert "does without a file" in caplog.text
    assert runner(proposer, a=request()).propose_draft_token_ids([[1, 2, 3, 1, 2]], 1) != [[]]


def test_a_runner_of_another_shape_costs_names_only(make: Make) -> None:
    batch = runner(make(), a=request())
    del batch.input_batch
    assert batch.propose_draft_token_ids([[1, 2, 3, 1, 2]], 1) == [[3, 1, 2, 3]]


def test_the_runner_is_caught_once_and_other_proposers_are_left_alone(make: Make) -> None:
    make(), make()
    runners = sys.modules["vllm.v1.worker.gpu_model_runner"].GPUModelRunner
    before = runners.propose_draft_token_ids
    catch_runner(runners, WeftProposer)
    assert runners.propose_draft_token_ids is before
    other = SimpleNamespace()
    with pytest.raises(AssertionError):
        runner(other).propose_draft_token_ids([], 1)
    assert not hasattr(other, "batch")


def test_facts_are_what_vllm_keeps_of_a_request() -> None:
    batch = RunnerBatch(Runner(None, b=request("plan", 3), a=request(regex="a+")))
    assert batch.rows() == [
        RowFacts("b", "plan", 3),
        RowFacts("a", "", 1, Constraint("regex", "a+")),
    ]
    assert "a" in batch.living()
    assert "c" not in batch.living()
    assert facts_of("x", request(["no", "text"])).label == ""
    assert facts_of("x", request("l" * 900)).label == "l" * 200
    pooling = SimpleNamespace(sampling_params=None, num_prompt_tokens=2)
    assert facts_of("x", pooling) == RowFacts("x", "", 2)


def test_constraints_are_read_as_vllm_keeps_them() -> None:
    wanted = request(json={"type": "object"}).sampling_params.structured_outputs
    assert constraint_of(wanted) == Constraint("json", '{"type": "object"}')
    wanted = request(json="{}").sampling_params.structured_outputs
    assert constraint_of(wanted) == Constraint("json", "{}")
    wanted = request(grammar="start: x").sampling_params.structured_outputs
    assert constraint_of(wanted) == Constraint("lark", "start: x")
    choice = request(choice=["a"]).sampling_params.structured_outputs
    assert constraint_of(choice) is None
    assert constraint_of(None) is None
