"""Seeds on a CPU: a prompt that is computed in pieces draws a token for each, which does not count.

vLLM 0.32 takes such a draw back by moving the generator's offset, and CPU generators have none: the
engine dies of the first one. Knows two methods of the runner, not what is sampled.
"""

from __future__ import annotations

import functools
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

_HOME = "vllm.v1.worker.gpu_model_runner"
_SAMPLE, _BOOK = "_sample", "_bookkeeping_sync"


class ChunkedSeed:
    """`_bookkeeping_sync` asks the generators of rows without a token for their offsets."""

    name = "seeds of prompts that are computed in pieces"
    why = "the generators of a CPU have no offsets, which killed the engine"

    def probe(self) -> bool:
        """Whether the installed method, with one such row, fails before it looks at the batch."""
        book = getattr(import_module(_HOME).GPUModelRunner, _BOOK)
        try:
            book(_one_unfinished_row(), None, None, None, None, 1)
        except _LookedOn:
            return False
        except RuntimeError:
            return True
        return False

    def apply(self) -> None:
        """Put such generators back into the state they were drawn from, and keep them hidden."""
        runner = import_module(_HOME).GPUModelRunner
        sample, book = getattr(runner, _SAMPLE), getattr(runner, _BOOK)

        @functools.wraps(sample)
        def sample_and_take_back(self: Any, *given: Any, **named: Any) -> Any:
            before = [(one, one.get_state()) for one in _generators_of_unfinished(self)]
            sampled = sample(self, *given, **named)
            for generator, state in before:
                generator.set_state(state)
            return sampled

        @functools.wraps(book)
        def book_without_generators(self: Any, *given: Any, **named: Any) -> Any:
            batch = self.input_batch
            generators, batch.generators = batch.generators, {}
            try:
                return book(self, *given, **named)
            finally:
                batch.generators = generators

        setattr(runner, _SAMPLE, sample_and_take_back)
        setattr(runner, _BOOK, book_without_generators)


def _generators_of_unfinished(runner: Any) -> list[torch.Generator]:
    """Those of the rows whose prompt goes on after this step."""
    batch = runner.input_batch
    rows = np.nonzero(runner.discard_request_mask.np[: batch.num_reqs])[0]
    found = (batch.generators.get(int(row)) for row in rows)
    return [generator for generator in found if generator is not None]


class _LookedOn(Exception):
    """The method has come past the place of the fault."""


class _Batch:
    num_reqs = 1

    def __init__(self) -> None:
        self.generators = {0: torch.Generator()}

    @property
    def req_ids(self) -> list[str]:
        raise _LookedOn


def _one_unfinished_row() -> SimpleNamespace:
    """As much of a runner as the method needs to come to the fault."""
    mask = SimpleNamespace(np=np.ones(1, dtype=bool))
    return SimpleNamespace(
        input_batch=_Batch(), discard_request_mask=mask, use_async_scheduling=False
    )
