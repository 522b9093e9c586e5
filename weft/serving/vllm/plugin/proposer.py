"""weft's proposer inside vLLM (`custom_class`): adapts the batch drafter to vLLM's interface.

There is one per worker process that samples. vLLM must run in any case: a missing part is logged
and left out. vLLM passes tokens to a custom proposer but no names, so the proposer gets the model
runner from a wrapper around the runner's call.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from weft.serving.vllm.drafting.batch_drafter import LOG, BatchDrafter
from weft.serving.vllm.drafting.forced_tokens import ForcedTokensCompiler
from weft.serving.vllm.drafting.memory import LONGEST_LABEL
from weft.serving.vllm.drafting.requests import LABEL, Constraint, RowFacts, RunningBatch
from weft.serving.vllm.drafting.settings import KEY, ProposerSettings, settings_from
from weft.serving.vllm.drafting.shared_texts import DraftChannelServer, TextArchive
from weft.serving.vllm.supervise.processes import MARK, Mark
from weft.serving.vllm.supervise.state_folders import drafting_folder, known_folder

if TYPE_CHECKING:
    from llguidance import LLTokenizer


_MOMENT = "propose_draft_token_ids"


class BatchAwareProposer(Protocol):
    """A proposer that uses the running batch."""

    batch: RunningBatch | None


class RunnerBatch:
    """Implements `RunningBatch` over vLLM's model runner."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._facts: dict[str, tuple[Any, RowFacts]] = {}

    def rows(self) -> list[RowFacts]:
        """One per row, in the order of the step's arrays."""
        requests = self._runner.requests
        names = self._runner.input_batch.req_ids
        self._facts = {name: self._facts_of(name, requests[name]) for name in names}
        return [self._facts[name][1] for name in names]

    def _facts_of(self, name: str, request: Any) -> tuple[Any, RowFacts]:
        """Cached from the last step if it is the same request, as schemas are long."""
        cached = self._facts.get(name)
        if cached is not None and cached[0] is request:
            return cached
        return request, facts_of(name, request)

    def living(self) -> Container[str]:
        """The requests that vLLM has not ended."""
        requests: Container[str] = self._runner.requests
        return requests


def facts_of(name: str, request: Any) -> RowFacts:
    """Facts of a request of vLLM."""
    sampling = request.sampling_params
    label = ((sampling.extra_args or {}) if sampling else {}).get(LABEL, "")
    return RowFacts(
        name,
        label[:LONGEST_LABEL] if isinstance(label, str) else "",
        int(request.num_prompt_tokens),
        constraint_of(getattr(sampling, "structured_outputs", None)),
    )


def constraint_of(wanted: Any) -> Constraint | None:
    """The constraint of vLLM's `StructuredOutputsParams`, if it is of a kind that forces tokens."""
    if wanted is None:
        return None
    if wanted.json is not None:
        plain = wanted.json if isinstance(wanted.json, str) else json.dumps(wanted.json)
        return Constraint("json", plain)
    if wanted.grammar is not None:
        return Constraint("lark", wanted.grammar)
    return None if wanted.regex is None else Constraint("regex", wanted.regex)


def catch_runner(runners: Any, proposer: type[BatchAwareProposer]) -> None:
    """Have `runners`, a class of vLLM, give their batch to their proposer. May be called again."""
    original = getattr(runners, _MOMENT)
    if hasattr(original, "gives_batch"):
        return

    @functools.wraps(original)
    def give_batch(runner: Any, *args: Any, **kwargs: Any) -> Any:
        drafter = getattr(runner, "drafter", None)
        if isinstance(drafter, proposer) and drafter.batch is None:
            drafter.batch = RunnerBatch(runner)
        return original(runner, *args, **kwargs)

    give_batch.gives_batch = True  # type: ignore[attr-defined]
    setattr(runners, _MOMENT, give_batch)


_Made = TypeVar("_Made")


class WeftProposer:
    """The proposer that vLLM creates from `vllm_config` and calls after every step."""

    def __init__(self, vllm_config: Any) -> None:
        self.batch: RunningBatch | None = None
        settings = _settings(vllm_config)
        model = vllm_config.model_config
        vocabulary = int(model.get_vocab_size())
        archive = _or_none(
            "a file of what was written", lambda: _archive(settings, model, vocabulary)
        )
        flexible = not vllm_config.structured_outputs_config.disable_any_whitespace
        self._drafts = BatchDrafter(
            settings,
            int(vllm_config.speculative_config.num_speculative_tokens),
            int(model.max_model_len),
            grammar=ForcedTokensCompiler(lambda: _tokenizer(model), whitespace_flexible=flexible),
            ended=archive.keep if archive is not None else lambda _label, _text: None,
        )
        for label, text in () if archive is None else archive.texts():
            self._drafts.memory.remember(label, text)
        self._channel = _or_none("a channel to other programs", lambda: _channel(vocabulary))
        _or_none("the names of requests", _catch)

    def load_model(self, *_: Any, **__: Any) -> None:
        """Nothing: there is no model."""

    def propose(
        self,
        sampled_token_ids: Sequence[Sequence[int]],
        num_tokens_no_spec: NDArray[np.int32],
        token_ids_cpu: NDArray[np.int32],
        slot_mappings: object = None,  # noqa: ARG002 - part of vLLM's interface
    ) -> list[list[int]]:
        """A draft for each row of the step; never raises."""
        if self._channel is not None:
            self._drafts.add_texts(self._channel.received())
        return self._drafts.propose(
            sampled_token_ids, num_tokens_no_spec, token_ids_cpu, self.batch
        )


def _settings(vllm_config: Any) -> ProposerSettings:
    try:
        return settings_from((vllm_config.additional_config or {}).get(KEY, {}))
    except (ValueError, AttributeError) as error:
        LOG.warning("weft's proposer takes its usual settings: %s", error)
        return ProposerSettings()


def _archive(settings: ProposerSettings, model: Any, vocabulary: int) -> TextArchive | None:
    return TextArchive(known_folder(), str(model.model), vocabulary) if settings.remember else None


def _channel(vocabulary: int) -> DraftChannelServer | None:
    mark = Mark.parse(os.environ.get(MARK, ""))
    if mark is None:
        return None
    return DraftChannelServer(drafting_folder(mark.serving) / f"{os.getpid()}.sock", vocabulary)


def _catch() -> None:
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    catch_runner(GPUModelRunner, WeftProposer)


def _tokenizer(model: Any) -> LLTokenizer:
    from llguidance.hf import from_tokenizer
    from vllm.tokenizers import cached_tokenizer_from_config

    return from_tokenizer(cached_tokenizer_from_config(model), int(model.get_vocab_size()))


def _or_none(what: str, make: Callable[[], _Made | None]) -> _Made | None:
    try:
        return make()
    except Exception as raised:  # noqa: BLE001 - vLLM must run without it
        LOG.warning("weft's proposer does without %s: %r", what, raised)
        return None
