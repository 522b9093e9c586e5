"""What the vLLM that is installed makes of weft's diffusion models, on a CPU, as JSON.

Run in a process of its own: importing vLLM takes seconds, and changes the process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np


def main(folder: Path) -> None:
    import torch
    from vllm.config import ModelConfig
    from vllm.model_executor.models.config import MODELS_CONFIG_MAP
    from vllm.model_executor.models.registry import ModelRegistry

    from weft.serving.vllm.plugin import register

    register()
    register()
    config = ModelConfig(str(folder), dtype="float32", skip_tokenizer_init=True)
    architecture = config.architectures[0]
    said: dict[str, Any] = {
        "diffusion": config.is_diffusion,
        "architecture": architecture,
        "canvas": config.hf_config.canvas_length,
        "layers": config.hf_config.num_hidden_layers,
        "supported": architecture in ModelRegistry.get_supported_archs(),
        "hooked": architecture in MODELS_CONFIG_MAP,
        "refused": refused(config),
        "attended": attended(config, torch),
        "admitted": admitted(config),
    }
    from weft.serving.vllm.diffusion.models import Qwen3Canvas

    said["state"] = Qwen3Canvas.get_model_state_cls().__name__
    print(json.dumps(said))


def refused(config: Any) -> str:
    from weft.serving.vllm.diffusion.config import CanvasSetting

    try:
        CanvasSetting.verify_and_update_config(SimpleNamespace(model_config=config))
    except ValueError as error:
        return str(error)
    return ""


def attended(config: Any, torch: Any) -> dict[str, Any]:
    """What the state hands to vLLM's attention for a canvas and a prompt, and its output type."""
    from vllm.config.compilation import CUDAGraphMode
    from vllm.v1.worker.gpu.sample.output import SamplerOutput

    from weft.serving.vllm.diffusion import models

    got: dict[str, Any] = {}
    models.build_attn_metadata = lambda **given: got.update(given) or {}
    vllm_config = SimpleNamespace(
        model_config=config,
        scheduler_config=SimpleNamespace(max_num_seqs=4, max_num_batched_tokens=64),
        diffusion_config=SimpleNamespace(canvas_length=4),
        additional_config={"weft_decode": "threshold:0.9"},
    )
    kept = models.CanvasState(vllm_config, torch.nn.Module(), None, torch.device("cpu"))
    new = SimpleNamespace(
        req_id="a",
        prompt_token_ids=[1, 2, 3, 4, 5, 6],
        prefill_token_ids=[1, 2, 3, 4, 5, 6],
        sampling_params=None,
    )
    kept.add_request(2, new)
    batch = SimpleNamespace(
        num_reqs=2,
        num_tokens=11,
        idx_mapping_np=np.array([2, 1]),
        cu_num_logits_np=np.array([0, 4, 4]),
        query_start_loc_np=np.array([0, 4, 11]),
        num_computed_tokens_np=np.array([10, 0]),  # the first runs ahead of what is known
    )
    tables = (torch.tensor([[7, 8], [5, 6]]),)
    kept.prepare_attn(batch, CUDAGraphMode.NONE, tables, torch.zeros(1, 11), [], None)
    drafts = torch.zeros(4, 4, dtype=torch.int64)
    sampler, rejection = kept.custom_sampler(
        SimpleNamespace(req_states=SimpleNamespace(draft_tokens=drafts))
    )
    output = sampler(
        torch.randn(4, config.get_vocab_size()),
        SimpleNamespace(
            **vars(batch),
            num_computed_prefill_tokens_np=np.array([6, 0]),
            num_scheduled_tokens=np.array([4, 7]),
            prefill_len_np=np.array([6, 7]),
        ),
    )
    kept.remove_request("a")
    return {
        "starts": got["query_start_loc_cpu"].tolist(),
        "lengths": got["seq_lens"].tolist(),
        "tables": got["block_tables"][0].tolist(),
        "causal": got["causal"],
        "longest": got["max_query_len"],
        "output": isinstance(output, SamplerOutput),
        "sampled": output.num_sampled.tolist(),
        "rejected": output.num_rejected.tolist(),
        "masks": int((drafts[2] == 61).sum()),
        "usual": kept.requests.served.preset,
        "rejection": rejection,
    }


def admitted(config: Any) -> list[str]:
    """What the front of vLLM says of requests: nothing, or why not."""
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine import input_processor

    from weft.decoding.diffusion.models.folder import describe
    from weft.serving.vllm.diffusion.config import admit
    from weft.serving.vllm.diffusion.decoder import ServedCanvas

    found = describe(Path(config.model))
    for _ in range(2):
        admit(ServedCanvas(found.traits, found.preset, 4))
    said = []
    wishes: list[dict[str, Any]] = [
        {"extra_args": {"weft_decode": "threshold:0.9"}},
        {},
        {"extra_args": {"weft_decode": "nonsense"}},
        {"extra_args": {"diffusion_read_only": True}},
        {"logprobs": 1},
        {"repetition_penalty": 1.5},
    ]
    for wish in wishes:
        try:
            input_processor.validate_diffusion_sampling_params(
                SamplingParams(**wish), canvas_length=4, vocab_size=64
            )
            said.append("")
        except VLLMValidationError as error:
            said.append(f"{type(error).__name__}: {error}")
    return said


if __name__ == "__main__":
    main(Path(sys.argv[1]))
