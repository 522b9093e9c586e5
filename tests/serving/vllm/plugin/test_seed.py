"""The repair of seeds, on a runner as small as its two methods."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from weft.serving.vllm.plugin import mend
from weft.serving.vllm.plugin.repairs import ChunkedSeed


class Batch:
    def __init__(self, seeds: list[int | None]) -> None:
        self.num_reqs = len(seeds)
        self.req_ids = [str(number) for number in range(len(seeds))]
        self.generators = {
            row: torch.Generator().manual_seed(seed)
            for row, seed in enumerate(seeds)
            if seed is not None
        }


class Setting:
    """The fault: an offset is asked for where there is none."""

    def __init__(self, seeds: list[int | None]) -> None:
        self.input_batch = Batch(seeds)
        self.discard_request_mask = SimpleNamespace(np=np.zeros(9, dtype=bool))
        self.use_async_scheduling = False

    def _sample(self, logits: object) -> list[float]:
        generators = self.input_batch.generators
        return [torch.rand(1, generator=generators[row]).item() for row in sorted(generators)]

    def _bookkeeping_sync(self, *_: Any) -> list[str]:
        for row in np.nonzero(self.discard_request_mask.np[: self.input_batch.num_reqs])[0]:
            generator = self.input_batch.generators.get(int(row))
            if generator is not None:
                generator.set_offset(generator.get_offset() - 4)
        return self.input_batch.req_ids.copy()

    def step(self, *unfinished: int) -> list[float]:
        self.discard_request_mask.np[:] = False
        self.discard_request_mask.np[list(unfinished)] = True
        drawn = self._sample(None)
        assert self._bookkeeping_sync(None, None, None, None, 1) == self.input_batch.req_ids
        return drawn


class Looking(Setting):
    """A version that looks before it asks."""

    def _bookkeeping_sync(self, *_: Any) -> list[str]:
        return self.input_batch.req_ids.copy()


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    def put(runner: type) -> Any:
        copied = type(runner.__name__, (runner,), dict(vars(runner)))
        module = ModuleType("runner")
        vars(module)["GPUModelRunner"] = copied
        monkeypatch.setitem(sys.modules, "vllm.v1.worker.gpu_model_runner", module)
        return copied

    return put


def test_draws_of_unfinished_prompts_are_taken_back_and_no_others(install: Any) -> None:
    runner_type = install(Setting)
    with pytest.raises(RuntimeError, match="offset"):
        runner_type([3]).step(0)
    assert ChunkedSeed().probe()
    mend([ChunkedSeed()])
    assert not ChunkedSeed().probe()

    whole = Setting([3, 4, None])
    first, second = whole.step(), whole.step()
    runner = runner_type([3, 4, None])
    generators = runner.input_batch.generators
    assert runner.step(0, 2) == first
    assert runner.step(0) == [first[0], second[1]]
    assert runner.step()[0] == first[0]
    assert runner.step()[0] == second[0]
    assert runner.input_batch.generators is generators


def test_a_prompt_that_is_computed_again_goes_on_where_it_was(install: Any) -> None:
    """A request that was preempted after tokens of its own must not draw their numbers again."""
    runner_type = install(Setting)
    mend([ChunkedSeed()])
    straight = Setting([3])
    expected = [straight.step() for _ in range(3)]
    runner = runner_type([3])
    assert [runner.step(), runner.step()] == expected[:2]
    runner.step(0)
    assert runner.step() == expected[2]


def test_a_failing_step_leaves_the_generators_in_the_batch(install: Any) -> None:
    class Failing(Setting):
        def _bookkeeping_sync(self, *given: Any) -> list[str]:
            Setting._bookkeeping_sync(self, *given)
            raise KeyError("later")

    runner_type = install(Failing)
    mend([ChunkedSeed()])
    runner = runner_type([3])
    with pytest.raises(KeyError):
        runner.step(0)
    assert list(runner.input_batch.generators) == [0]


def test_a_runner_that_looks_before_it_asks_stays(install: Any) -> None:
    runner_type = install(Looking)
    before = runner_type._bookkeeping_sync, runner_type._sample
    mend([ChunkedSeed()])
    assert (runner_type._bookkeeping_sync, runner_type._sample) == before


def test_a_runner_without_the_method_stays(install: Any) -> None:
    class Other:
        pass

    runner_type = install(Other)
    mend([ChunkedSeed()])
    assert not hasattr(runner_type, "_bookkeeping_sync")
