"""Pipeline parallelism on a CPU: the buffer for what one stage hands to the next.

vLLM 0.32 makes it in the warm-up for compiled code, which eager workers skip: their first request
kills them. Knows the one method, not how stages talk.
"""

from __future__ import annotations

import functools
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch

_HOME = "vllm.v1.worker.gpu_model_runner"


class PipelineBuffer:
    """`sync_and_gather_intermediate_tensors` asserts a buffer that nobody made."""

    name = "pipeline parallelism without a warm-up"
    why = "the buffer between stages was only made by a warm-up that was skipped"

    def probe(self) -> bool:
        """Whether the installed method, asked with no buffer there, stops at its assertion."""
        runner = import_module(_HOME).GPUModelRunner
        received = import_module("vllm.sequence").IntermediateTensors({"x": torch.ones(1, 1)})
        try:
            runner.sync_and_gather_intermediate_tensors(
                _without_buffer(received), 1, received, True
            )
        except AssertionError:
            return True
        return False

    def apply(self) -> None:
        """Make the buffer, as large as the warm-up makes it, before it is first needed."""
        runner = import_module(_HOME).GPUModelRunner
        gather = runner.sync_and_gather_intermediate_tensors

        @functools.wraps(gather)
        def make_then_gather(self: Any, *given: Any, **named: Any) -> Any:
            if self.intermediate_tensors is None:
                self.intermediate_tensors = self.model.make_empty_intermediate_tensors(
                    batch_size=self.max_num_tokens,
                    dtype=self.model_config.dtype,
                    device=self.device,
                )
            return gather(self, *given, **named)

        runner.sync_and_gather_intermediate_tensors = make_then_gather


def _without_buffer(received: Any) -> SimpleNamespace:
    """As much of a worker's model runner as making and filling a buffer of one token takes."""

    def make(**_: object) -> Any:
        return type(received)({name: torch.zeros(1, 1) for name in received.tensors})

    return SimpleNamespace(
        intermediate_tensors=None,
        model=SimpleNamespace(make_empty_intermediate_tensors=make),
        model_config=SimpleNamespace(dtype=torch.float32),
        max_num_tokens=1,
        device=torch.device("cpu"),
    )
