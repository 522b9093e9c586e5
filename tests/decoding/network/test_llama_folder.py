"""A folder of the Llama family that is read without transformers is the model it reads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from weft.decoding.network import network as networks
from weft.decoding.network.llama_folder import LlamaModel, read_llama
from weft.decoding.network.network import Network
from weft.decoding.network.options import NetworkOptions
from weft.decoding.network.packing import Span

SIZES: dict[str, Any] = {
    "vocab_size": 120,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
}
MAKERS: dict[str, Callable[[], torch.nn.Module]] = {
    "tied": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=True)),
    "wide heads": lambda: LlamaForCausalLM(
        LlamaConfig(**SIZES, head_dim=16, rope_parameters={"rope_type": "default", "rope_theta": 5})
    ),
    "biases": lambda: Qwen2ForCausalLM(Qwen2Config(**SIZES, use_sliding_window=False)),
}
OPTIONS = NetworkOptions(dtype="float32", threads=1)


@pytest.fixture(scope="module", params=MAKERS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(1)
    model = MAKERS[request.param]()
    for name, weight in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(weight)
    model.generation_config.update(eos_token_id=[3, 7], temperature=0.6, top_k=5, do_sample=True)
    path = tmp_path_factory.mktemp("family")
    model.save_pretrained(path)
    return path


def logits(network: Network) -> torch.Tensor:
    span = Span(0, range(5), (4, 8, 100, 3, 55), 5)
    return torch.from_numpy(network.forward([span])[0].logits.copy())


def test_it_is_the_model_that_transformers_reads(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Network.load(folder, OPTIONS)
    assert isinstance(found._model, LlamaModel)
    monkeypatch.setattr(networks, "read_llama", lambda *_: None)
    other = Network.load(folder, OPTIONS)
    assert not isinstance(other._model, LlamaModel)
    assert torch.equal(logits(found), logits(other))
    assert torch.equal(logits(found.share(1)), logits(other.share(1)))
    assert torch.equal(logits(found.part(0, 2)), logits(other))
    assert found.generation == other.generation
    assert (found.path, found.context_tokens) == (other.path, other.context_tokens)


@pytest.mark.parametrize(
    "change",
    [
        {"architectures": ["OtherForCausalLM"]},
        {"model_type": "gemma"},
        {"hidden_act": "gelu"},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}},
        {"rope_scaling": {"type": "linear", "factor": 2.0}},
        {"sliding_window": 8, "use_sliding_window": True},
        {"layer_types": ["sliding_attention", "full_attention"]},
        {"quantization_config": {"quant_method": "gptq"}},
        {"num_hidden_layers": 3},
        {"intermediate_size": 32},
        {"hidden_size": None},
    ],
)
def test_what_it_does_not_know_is_left_to_transformers(
    folder: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    path = copytree(folder, tmp_path / "changed")
    config = path / "config.json"
    said = json.loads(config.read_text("utf-8"))
    config.write_text(json.dumps(said | change), "utf-8")
    assert read_llama(path, torch.float32) is None


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_broken_files_are_left_to_transformers(folder: Path, tmp_path: Path, name: str) -> None:
    path = copytree(folder, tmp_path / "broken")
    (path / name).write_text("[]", "utf-8")
    assert read_llama(path, torch.float32) is None
    (path / name).unlink()
    assert read_llama(path, torch.float32) is None


@pytest.mark.model
def test_the_embedded_model_loads_without_transformers(smollm2: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from weft.serving.local.autoregressive.batcher import Batcher\n"
        "from weft.serving.local import LocalOptions\n"
        "Batcher.load(Path(sys.argv[1]), LocalOptions(threads=1))\n"
        "print('transformers' in sys.modules, 'torch._dynamo' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(smollm2)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
