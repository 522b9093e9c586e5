"""weft's proposer inside vLLM (`custom_class`): vLLM's shapes in, drafts out. Makes none itself.

One for each worker process that samples. vLLM must run whatever happens here: what cannot be had
is done without, with one line in its log.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from weft.serving.vllm.drafting.channel.listening import Ear
from weft.serving.vllm.drafting.drafts import LOG, Drafts
from weft.serving.vllm.drafting.facts import Batch
from weft.serving.vllm.drafting.forced import Forcing
from weft.serving.vllm.drafting.known import Known
from weft.serving.vllm.drafting.settings import KEY, Settings, settings_from
from weft.serving.vllm.places import drafting_folder, known_folder
from weft.serving.vllm.plugin.batch import catch_runner
from weft.serving.vllm.processes import MARK, Mark

if TYPE_CHECKING:
    from llguidance import LLTokenizer

_Made = TypeVar("_Made")


class WeftProposer:
    """What vLLM makes of `vllm_config` and asks after every step."""

    def __init__(self, vllm_config: Any) -> None:
        self.batch: Batch | None = None
        how = _settings(vllm_config)
        model = vllm_config.model_config
        vocabulary = int(model.get_vocab_size())
        known = _or_none("a file of what was written", lambda: _known(how, model, vocabulary))
        flexible = not vllm_config.structured_outputs_config.disable_any_whitespace
        self._drafts = Drafts(
            how,
            int(vllm_config.speculative_config.num_speculative_tokens),
            int(model.max_model_len),
            grammar=Forcing(lambda: _tokenizer(model), whitespace_flexible=flexible),
            ended=known.keep if known is not None else lambda _label, _text: None,
        )
        for label, text in () if known is None else known.texts():
            self._drafts.memory.remember(label, text)
        self._ear = _or_none("a channel to other programs", lambda: _ear(vocabulary))
        _or_none("the names of requests", _catch)

    def load_model(self, *_: Any, **__: Any) -> None:
        """There is none to load."""

    def propose(
        self,
        sampled_token_ids: Sequence[Sequence[int]],
        num_tokens_no_spec: NDArray[np.int32],
        token_ids_cpu: NDArray[np.int32],
        slot_mappings: object = None,  # noqa: ARG002 - vLLM gives it to every proposer
    ) -> list[list[int]]:
        """A draft for each row of the step; never raises."""
        if self._ear is not None:
            self._drafts.hear(self._ear.heard())
        return self._drafts.propose(
            sampled_token_ids, num_tokens_no_spec, token_ids_cpu, self.batch
        )


def _settings(vllm_config: Any) -> Settings:
    try:
        return settings_from((vllm_config.additional_config or {}).get(KEY, {}))
    except (ValueError, AttributeError) as error:
        LOG.warning("weft's proposer takes its usual settings: %s", error)
        return Settings()


def _known(how: Settings, model: Any, vocabulary: int) -> Known | None:
    return Known(known_folder(), str(model.model), vocabulary) if how.remember else None


def _ear(vocabulary: int) -> Ear | None:
    mark = Mark.parse(os.environ.get(MARK, ""))
    if mark is None:
        return None
    return Ear(drafting_folder(mark.serving) / f"{os.getpid()}.sock", vocabulary)


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
