"""What vLLM's own classes make of heads, on a CPU and without a server, as JSON.

`python -m tests.serving.vllm.launch.heads TARGET CASES`: CASES is a file of JSON objects with
`method`, `folder`, `tokens`, `text`, and `features` or `state`. Only attention is replaced: vLLM's
needs pages of keys.
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def main(target: Path, cases: Path) -> None:
    import torch
    from vllm.config import ModelConfig, ParallelConfig, set_current_vllm_config
    from vllm.distributed import init_distributed_environment, initialize_model_parallel

    model = ModelConfig(str(target), dtype="float32", skip_tokenizer_init=True)
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        place = f"tcp://127.0.0.1:{opened.getsockname()[1]}"
    torch.set_default_dtype(torch.float32)
    told = []
    for number, case in enumerate(json.loads(cases.read_text())):
        config = configured(case, model, ParallelConfig())
        with set_current_vllm_config(config):
            if not number:
                init_distributed_environment(1, 0, place, 0, "gloo")
                initialize_model_parallel(1, 1)
            with torch.inference_mode():
                told.append(read(case, config, torch))
        config.compilation_config.static_forward_context.clear()
    print(json.dumps(told))


def configured(case: dict[str, Any], model: Any, parallel: Any) -> Any:
    from vllm.config import CompilationConfig, SpeculativeConfig, VllmConfig

    speculative = SpeculativeConfig(
        model=case["folder"],
        method=case["method"],
        num_speculative_tokens=case["tokens"],
        target_model_config=model,
        target_parallel_config=parallel,
    )
    return VllmConfig(
        model_config=model,
        speculative_config=speculative,
        parallel_config=parallel,
        compilation_config=CompilationConfig(mode=0),
    )


def read(case: dict[str, Any], config: Any, torch: Any) -> dict[str, Any]:
    from safetensors.torch import load_file
    from vllm.model_executor.model_loader.utils import process_weights_after_loading
    from vllm.model_executor.models.registry import ModelRegistry
    from vllm.v1.worker.gpu.spec_decode.eagle.eagle3_utils import get_eagle3_aux_layers_from_config

    draft = config.speculative_config.draft_model_config
    kind, _ = ModelRegistry.resolve_model_cls(draft.architectures, draft)
    head = kind(vllm_config=config)
    weights = load_file(Path(case["folder"]) / "model.safetensors")
    # vLLM casts a checkpoint to the model's precision, and shares the target's embeddings
    head.load_weights([(name, full(value)) for name, value in weights.items()])
    if case["method"] != "medusa" and not getattr(head, "has_own_embed_tokens", False):
        head.model.embed_tokens.weight.data = torch.tensor(case["embeddings"])
    if case["method"] == "dflash" and "lm_head.weight" not in weights:
        head.lm_head.weight.data = torch.tensor(case["head"])
    process_weights_after_loading(head, draft, torch.device("cpu"))
    make = {"eagle3": eagle3, "dflash": dflash, "medusa": medusa}[case["method"]]
    logits = make(case, head, torch)
    taps = get_eagle3_aux_layers_from_config(config.speculative_config)
    finite = [[x if abs(x) < 1e30 else None for x in row] for row in logits.tolist()]
    return {"class": kind.__name__, "taps": taps, "logits": finite}


def full(value: Any) -> Any:
    return value.float() if value.is_floating_point() else value


def attention(context: Any, causal: bool, torch: Any) -> Any:
    """In the place of vLLM's: one sequence, after the keys and values of `context`, if any."""

    class Plain(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.sizes = inner.num_heads, inner.num_kv_heads, inner.head_size

        def forward(self, query: Any, key: Any, value: Any) -> Any:
            heads, kv_heads, size = self.sizes
            query = query.view(-1, heads, size).transpose(0, 1)
            key, value = (of.view(-1, kv_heads, size) for of in (key, value))
            if context:
                before = context.pop(0)
                key, value = torch.cat([before[0], key]), torch.cat([before[1], value])
            groups = heads // kv_heads
            key, value = (of.transpose(0, 1).repeat_interleave(groups, 0) for of in (key, value))
            found = torch.nn.functional.scaled_dot_product_attention(
                query[None], key[None], value[None], is_causal=causal
            )
            return found[0].transpose(0, 1).flatten(1)

    return Plain


def eagle3(case: dict[str, Any], head: Any, torch: Any) -> Any:
    """Logits [1, vocabulary] of the token after the text."""
    features = torch.tensor(case["features"])
    plain = attention([], True, torch)
    for layer in head.model.layers:
        layer.self_attn.attn = plain(layer.self_attn.attn)
    fused = head.combine_hidden_states(features)
    states, _ = head(torch.tensor(case["text"]), torch.arange(len(features)), fused)
    return head.compute_logits(states[-1:])


def dflash(case: dict[str, Any], head: Any, torch: Any) -> Any:
    """Logits [tokens, vocabulary] of the slots after the last token."""
    features = torch.tensor(case["features"])
    kept: list[Any] = []
    rows, block = len(features), 1 + case["tokens"]
    store = SimpleNamespace(do_kv_cache_update=lambda _, k, v, *__: kept.append((k, v)))
    head.model._attn_layers = [
        SimpleNamespace(impl=store, kv_cache=None) for _ in head.model.layers
    ]
    context = head.combine_hidden_states(features)
    # the grouped norm of all layers is a kernel of GPUs; that of a CPU takes the first layer's
    norms = [layer.self_attn.k_norm for layer in head.model.layers]
    head.model._normalize_context_k = lambda keys: torch.stack(
        [norm(of.contiguous()) for norm, of in zip(norms, keys, strict=True)]
    )
    head.precompute_and_store_context_kv(context, torch.arange(rows), torch.arange(rows))
    plain = attention(kept, False, torch)
    for layer in head.model.layers:
        layer.self_attn.attn = plain(layer.self_attn.attn)
    ids = torch.tensor([case["text"][-1], *[head.model.mask_token_id] * case["tokens"]])
    states = head(ids, torch.arange(rows, rows + block))
    return head.compute_logits(states[1:])


def medusa(case: dict[str, Any], head: Any, torch: Any) -> Any:
    """Logits [heads, vocabulary] of one state."""
    state = torch.tensor([case["state"]])
    return torch.cat(head.compute_logits(head(state)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
