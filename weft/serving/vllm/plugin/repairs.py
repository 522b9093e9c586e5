"""Faults of vLLM 0.32 on a CPU, and their repairs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

Expand = Callable[..., torch.Tensor]
_REJECTION_SAMPLER = "vllm.v1.sample.rejection_sampler"
_ENDS = (2, 3, 3, 6)
_OWNERS = (0, 0, 1, 3, 3, 3)


class TokenExpansion:
    """Speculative sampling: a request's temperature, top_k and top_p, once per draft token.

    `expand_batch_to_tokens` hands its C++ kernel an int64 copy of the output and never copies it
    back: the sampler divides logits by uninitialised memory.
    """

    name = "speculative sampling at a temperature above 0"
    why = "temperature, top_k and top_p of draft tokens were uninitialised memory"

    def probe(self) -> bool:
        """Whether the installed function returns wrong values."""
        return not expands(import_module(_REJECTION_SAMPLER).expand_batch_to_tokens)

    def apply(self) -> None:
        """Replace the function."""
        sampler: Any = import_module(_REJECTION_SAMPLER)
        sampler.expand_batch_to_tokens = expand_batch_to_tokens


def expand_batch_to_tokens(
    x: torch.Tensor,  # [requests]
    cu_num_tokens: torch.Tensor,  # [requests], where the tokens of each one end
    num_tokens: int,
    replace_from: int = 0,
    replace_to: int = 0,
) -> torch.Tensor:  # [num_tokens]
    """Repeat each request's value for each of its tokens; `replace_from` becomes `replace_to`.

    `num_tokens` is the last of `cu_num_tokens`. The result has the type and device of `x`.
    """
    counts = torch.diff(cu_num_tokens, prepend=cu_num_tokens.new_zeros(1))
    values = x.masked_fill(x == replace_from, replace_to)
    return values.repeat_interleave(counts, output_size=num_tokens)


def expands(expand: Expand) -> bool:
    """Whether `expand` is correct, for temperatures and for a top_k.

    Each probe has values of its own, so that memory left over from another one is wrong.
    """
    return all(
        _is_right(expand, torch.tensor([first, 0, first + 2, first + 3], dtype=dtype), replacement)
        for dtype, first, replacement in (
            (torch.float32, 0.375, 0),
            (torch.float32, 7.25, 1),
            (torch.int32, 23, 0),
            (torch.int32, 41, 1),
        )
    )


def _is_right(expand: Expand, values: torch.Tensor, replacement: int) -> bool:
    ends = torch.tensor(_ENDS, dtype=torch.int32)
    inputs = values.tolist()
    expected = [inputs[owner] or replacement for owner in _OWNERS]
    return bool(expand(values, ends, len(expected), 0, replacement).tolist() == expected)


_TOP_K_SAMPLER = "vllm.v1.sample.ops.topk_topp_sampler"


class EmptyTopK:
    """A top_k without a top_p in a step without drafts.

    Every step of a speculating engine uses the rejection sampler, even a first prefill, which has
    no draft tokens. The maximum over no rows raises in `apply_top_k_only` and kills the engine.
    """

    name = "top_k in steps without draft tokens"
    why = "the largest top_k of no rows raised, which killed the engine"

    def probe(self) -> bool:
        """Whether the installed function fails on no rows."""
        sampler = import_module(_TOP_K_SAMPLER)
        try:
            sampler.apply_top_k_only(torch.empty(0, 4), torch.empty(0, dtype=torch.int32))
        except RuntimeError:
            return True
        return False

    def apply(self) -> None:
        """Handle no rows; pass all other inputs to the function."""
        sampler: Any = import_module(_TOP_K_SAMPLER)
        mask = sampler.apply_top_k_only

        @functools.wraps(mask)
        def mask_some(logits: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
            masked: torch.Tensor = mask(logits, k) if logits.shape[0] else logits
            return masked

        sampler.apply_top_k_only = mask_some


_RUNNER_MODULE = "vllm.v1.worker.gpu_model_runner"


class PipelineBuffer:
    """Pipeline parallelism: the buffer for the output of the previous stage.

    It is allocated in the warm-up for compiled code, which eager workers skip: their first request
    kills them in `sync_and_gather_intermediate_tensors`.
    """

    name = "pipeline parallelism without a warm-up"
    why = "the buffer between stages was only made by a warm-up that was skipped"

    def probe(self) -> bool:
        """Whether the installed method fails its assertion without a buffer."""
        runner = import_module(_RUNNER_MODULE).GPUModelRunner
        received = import_module("vllm.sequence").IntermediateTensors({"x": torch.ones(1, 1)})
        try:
            runner.sync_and_gather_intermediate_tensors(
                _without_buffer(received), 1, received, True
            )
        except AssertionError:
            return True
        return False

    def apply(self) -> None:
        """Allocate the buffer, as large as the warm-up makes it, before its first use."""
        runner = import_module(_RUNNER_MODULE).GPUModelRunner
        gather = runner.sync_and_gather_intermediate_tensors

        @functools.wraps(gather)
        def make_then_gather(self: Any, *args: Any, **kwargs: Any) -> Any:
            if self.intermediate_tensors is None:
                self.intermediate_tensors = self.model.make_empty_intermediate_tensors(
                    batch_size=self.max_num_tokens,
                    dtype=self.model_config.dtype,
                    device=self.device,
                )
            return gather(self, *args, **kwargs)

        runner.sync_and_gather_intermediate_tensors = make_then_gather


def _without_buffer(received: Any) -> SimpleNamespace:
    """The part of a model runner that allocating and filling a buffer of one token needs."""

    def make(**_: object) -> Any:
        return type(received)({name: torch.zeros(1, 1) for name in received.tensors})

    return SimpleNamespace(
        intermediate_tensors=None,
        model=SimpleNamespace(make_empty_intermediate_tensors=make),
        model_config=SimpleNamespace(dtype=torch.float32),
        max_num_tokens=1,
        device=torch.device("cpu"),
    )


_SAMPLE, _BOOKKEEP = "_sample", "_bookkeeping_sync"


class ChunkedSeed:
    """Seeds: a prompt computed in pieces samples a token for each piece, which does not count.

    vLLM undoes such a draw by moving the generator's offset, which CPU generators lack: the engine
    dies in `_bookkeeping_sync`.
    """

    name = "seeds of prompts that are computed in pieces"
    why = "the generators of a CPU have no offsets, which killed the engine"

    def probe(self) -> bool:
        """Whether the installed method, with one such row, fails before it reads the batch."""
        bookkeep = getattr(import_module(_RUNNER_MODULE).GPUModelRunner, _BOOKKEEP)
        try:
            bookkeep(_one_unfinished_row(), None, None, None, None, 1)
        except _PassedFault:
            return False
        except RuntimeError:
            return True
        return False

    def apply(self) -> None:
        """Restore the state of such generators after the draw, and hide them from vLLM's undo."""
        runner = import_module(_RUNNER_MODULE).GPUModelRunner
        sample, bookkeep = getattr(runner, _SAMPLE), getattr(runner, _BOOKKEEP)

        @functools.wraps(sample)
        def sample_and_restore(self: Any, *args: Any, **kwargs: Any) -> Any:
            before = [(one, one.get_state()) for one in _generators_of_unfinished(self)]
            sampled = sample(self, *args, **kwargs)
            for generator, state in before:
                generator.set_state(state)
            return sampled

        @functools.wraps(bookkeep)
        def bookkeep_without_generators(self: Any, *args: Any, **kwargs: Any) -> Any:
            batch = self.input_batch
            generators, batch.generators = batch.generators, {}
            try:
                return bookkeep(self, *args, **kwargs)
            finally:
                batch.generators = generators

        setattr(runner, _SAMPLE, sample_and_restore)
        setattr(runner, _BOOKKEEP, bookkeep_without_generators)


def _generators_of_unfinished(runner: Any) -> list[torch.Generator]:
    """The generators of rows whose prompt is not complete after this step."""
    batch = runner.input_batch
    rows = np.nonzero(runner.discard_request_mask.np[: batch.num_reqs])[0]
    found = (batch.generators.get(int(row)) for row in rows)
    return [generator for generator in found if generator is not None]


class _PassedFault(Exception):
    """The method has passed the fault."""


class _UnfinishedBatch:
    num_reqs = 1

    def __init__(self) -> None:
        self.generators = {0: torch.Generator()}

    @property
    def req_ids(self) -> list[str]:
        raise _PassedFault


def _one_unfinished_row() -> SimpleNamespace:
    """The part of a runner that the method needs to reach the fault."""
    mask = SimpleNamespace(np=np.ones(1, dtype=bool))
    return SimpleNamespace(
        input_batch=_UnfinishedBatch(), discard_request_mask=mask, use_async_scheduling=False
    )
