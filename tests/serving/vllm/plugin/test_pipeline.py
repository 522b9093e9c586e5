"""The repair of the buffer between pipeline stages, on a runner as small as its one method."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from weft.serving.vllm.plugin import mend
from weft.serving.vllm.plugin.repairs import PipelineBuffer


class Tensors:
    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        self.tensors = dict(tensors)

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.tensors[name]


class Asserting:
    """The fault: a buffer is taken for granted."""

    def __init__(self) -> None:
        self.intermediate_tensors: Tensors | None = None
        self.max_num_tokens = 8
        self.model_config = SimpleNamespace(dtype=torch.float64)
        self.device = torch.device("cpu")
        self.model = SimpleNamespace(make_empty_intermediate_tensors=self.make)
        self.made = 0

    def make(self, batch_size: int, dtype: torch.dtype, device: torch.device) -> Tensors:
        self.made += 1
        return Tensors({"hidden": torch.zeros(batch_size, 3, dtype=dtype, device=device)})

    def sync_and_gather_intermediate_tensors(
        self, num_tokens: int, intermediate_tensors: Tensors | None, sync_self: bool
    ) -> Tensors:
        assert self.intermediate_tensors is not None
        if sync_self:
            assert intermediate_tensors is not None
            for name, received in intermediate_tensors.tensors.items():
                self.intermediate_tensors[name][:num_tokens].copy_(received[:num_tokens])
        held = self.intermediate_tensors.tensors
        return Tensors({name: tensor[:num_tokens] for name, tensor in held.items()})


class Making(Asserting):
    """A version that makes its buffer itself."""

    def sync_and_gather_intermediate_tensors(self, *given: Any) -> Tensors:
        if self.intermediate_tensors is None:
            self.intermediate_tensors = self.model.make_empty_intermediate_tensors(
                batch_size=self.max_num_tokens, dtype=self.model_config.dtype, device=self.device
            )
        return Asserting.sync_and_gather_intermediate_tensors(self, *given)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    def put(runner: type) -> type:
        copied = type(runner.__name__, (runner,), dict(vars(runner)))
        worker, sequence = ModuleType("runner"), ModuleType("sequence")
        vars(worker)["GPUModelRunner"] = copied
        vars(sequence)["IntermediateTensors"] = Tensors
        monkeypatch.setitem(sys.modules, "vllm.v1.worker.gpu_model_runner", worker)
        monkeypatch.setitem(sys.modules, "vllm.sequence", sequence)
        return copied

    return put


def test_the_missing_buffer_is_made_once_and_filled(install: Any) -> None:
    runner_type = install(Asserting)
    assert PipelineBuffer().probe()
    mend([PipelineBuffer()])
    assert not PipelineBuffer().probe()
    runner = runner_type()
    received = Tensors({"hidden": torch.arange(6.0).reshape(2, 3)})
    gathered = runner.sync_and_gather_intermediate_tensors(2, received, True)
    assert gathered["hidden"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert runner.intermediate_tensors["hidden"].shape == (8, 3)
    assert gathered["hidden"].dtype == torch.float64
    runner.sync_and_gather_intermediate_tensors(1, None, sync_self=False)
    assert runner.made == 1


def test_a_runner_that_makes_its_buffer_stays(install: Any) -> None:
    runner_type = install(Making)
    before = runner_type.sync_and_gather_intermediate_tensors
    mend([PipelineBuffer()])
    assert runner_type.sync_and_gather_intermediate_tensors is before


def test_a_runner_without_the_method_stays(install: Any) -> None:
    class Other:
        pass

    runner_type = install(Other)
    mend([PipelineBuffer()])
    assert not hasattr(runner_type, "sync_and_gather_intermediate_tensors")
