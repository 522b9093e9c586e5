"""Diffusion models of vLLM's own Llama and Qwen layers, and their state (`ModelState`).

Only vLLM imports this, in its workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from vllm.config.compilation import CUDAGraphMode
from vllm.model_executor.models.llama import LlamaForCausalLM
from vllm.model_executor.models.qwen2 import Qwen2ForCausalLM
from vllm.model_executor.models.qwen3 import Qwen3ForCausalLM
from vllm.v1.worker.gpu.attn_utils import build_attn_metadata
from vllm.v1.worker.gpu.model_states.interface import ModelState
from vllm.v1.worker.gpu.sample.output import SamplerOutput

from weft.decoding.diffusion.models.folder import describe
from weft.serving.vllm.diffusion.batch import CanvasRequests, Numbers, cut
from weft.serving.vllm.diffusion.config import default_decoder
from weft.serving.vllm.diffusion.decoder import served_as
from weft.serving.vllm.diffusion.sampler import CanvasSampler


class CanvasState(ModelState):  # type: ignore[misc]
    """State of a worker: requests by place, and block-causal attention."""

    num_new_sampled_tokens_per_step = 0

    def __init__(self, vllm_config: Any, model: Any, encoder_cache: Any, device: Any) -> None:
        super().__init__(vllm_config, model, encoder_cache, device)
        model_description = describe(Path(self.model_config.model))
        width = int(vllm_config.diffusion_config.canvas_length)
        served = served_as(model_description, width, default_decoder(vllm_config))
        self.requests = CanvasRequests(served, self.max_model_len)

    def get_supported_generation_tasks(self) -> tuple[str, ...]:
        """See vLLM."""
        return ("generate",)

    def custom_sampler(self, sampler: Any) -> tuple[Any, Any] | None:
        """Weft's sampler, over vLLM's table of drafts."""
        drafts = sampler.req_states.draft_tokens
        return CanvasSampler(self.requests, drafts, self._head, _output), None

    def add_request(self, req_index: int, new_req_data: Any) -> None:
        """Add a request; one that was preempted comes again with its answer so far."""
        prompt = list(new_req_data.prefill_token_ids or new_req_data.prompt_token_ids)
        answered = len(prompt) - len(new_req_data.prompt_token_ids)
        name, sampling = new_req_data.req_id, new_req_data.sampling_params
        self.requests.add(name, req_index, prompt, answered, sampling)

    def remove_request(self, req_id: str) -> None:
        """See vLLM."""
        self.requests.remove(req_id)

    def prepare_inputs_embeds(self, *_: Any) -> torch.Tensor | None:
        """None: the model embeds tokens."""
        return None

    def prepare_inputs(self, *_: Any) -> dict[str, Any]:
        """Nothing except tokens and positions."""
        return {}

    def prepare_dummy_inputs(self, *_: Any) -> dict[str, Any]:
        """Nothing except tokens and positions."""
        return {}

    def prepare_attn(
        self,
        input_batch: Any,
        cudagraph_mode: Any,
        block_tables: tuple[torch.Tensor, ...],
        slot_mappings: torch.Tensor,
        attn_groups: Any,
        kv_cache_config: Any,
        **_: Any,
    ) -> dict[str, Any]:
        """Metadata of attention without a mask, over pieces that end at block ends."""
        assert cudagraph_mode != CUDAGraphMode.FULL, "pieces have no fixed number"
        cuts = cut(*self._reads(input_batch), self.requests.served.traits.block)
        starts = torch.from_numpy(cuts.starts)
        texts = torch.from_numpy(cuts.texts.astype(np.int64)).to(self.device)
        metadata: dict[str, Any] = build_attn_metadata(
            attn_groups=attn_groups,
            num_reqs=len(cuts.lengths),
            num_tokens=input_batch.num_tokens,
            query_start_loc_gpu=starts.to(self.device),
            query_start_loc_cpu=starts,
            max_query_len=cuts.longest,
            seq_lens=torch.from_numpy(cuts.lengths).to(self.device),
            max_seq_len=self.max_model_len,
            block_tables=tuple(table[texts] for table in block_tables),
            slot_mappings=slot_mappings,
            kv_cache_config=kv_cache_config,
            causal=False,
        )
        return metadata

    def _reads(self, batch: Any) -> tuple[Numbers, Numbers]:
        """First slot and number of tokens that each request reads.

        The scheduler may count more tokens as computed than there are: a canvas begins at its row's
        base.
        """
        count = batch.num_reqs
        first = batch.num_computed_tokens_np[:count].astype(np.int32)
        canvas = np.diff(batch.cu_num_logits_np[: count + 1]) > 0
        for index in np.flatnonzero(canvas):
            request = self.requests[int(batch.idx_mapping_np[index])]
            if request is not None:
                first[index] = request.row.base
        return first, np.diff(batch.query_start_loc_np[: count + 1]).astype(np.int32)

    def _head(self, token: int) -> torch.Tensor:
        logits: torch.Tensor = self.model.compute_logits(self.model.last_states[token][None])[0]
        return logits


def _output(**fields: torch.Tensor) -> Any:
    return SamplerOutput(logprobs_tensors=None, num_nans=None, **fields)


Weights = Iterable[tuple[str, torch.Tensor]]


class _Canvas:
    """Mixin for vLLM's models: published names of weights, and access to the last states."""

    last_states: torch.Tensor
    """[tokens, width]: output of the last layer in the previous pass."""

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)  # type: ignore[call-arg]
        self._family = describe(Path(vllm_config.model_config.model)).family

    @staticmethod
    def get_model_state_cls() -> type[CanvasState]:
        """vLLM's hook for models whose requests have a state."""
        return CanvasState

    def forward(self, *given: Any, **named: Any) -> Any:
        """The layers' forward pass."""
        states = super().forward(*given, **named)  # type: ignore[misc]
        self.last_states = states
        return states

    def load_weights(self, weights: Weights) -> Any:
        """Load weights by their published names."""
        return super().load_weights(self._renamed(weights))  # type: ignore[misc]

    def _renamed(self, weights: Weights) -> Iterator[tuple[str, torch.Tensor]]:
        family = self._family
        for name, tensor in weights:
            if not family.ignored or not name.startswith(family.ignored):
                yield family.renamed(name), tensor


class LlamaCanvas(_Canvas, LlamaForCausalLM):  # type: ignore[misc]
    """LLaDA, Tiny-A2D's Llama and weft's own."""


class Qwen2Canvas(_Canvas, Qwen2ForCausalLM):  # type: ignore[misc]
    """Dream, Dimple's language part, Fast-dLLM v2, Tiny-A2D's Qwen2 and weft's own."""


class Qwen3Canvas(_Canvas, Qwen3ForCausalLM):  # type: ignore[misc]
    """SDAR, Tiny-A2D's Qwen3 and weft's own."""
