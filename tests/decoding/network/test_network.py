from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import MambaConfig, MambaForCausalLM

from tests.serving.local.playback import EXACT
from weft.core.errors import CapabilityError
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.network.quantization import PackedLinear, can_pack, pack_linears


def altered(source: Path, target: Path, **config: Any) -> Path:
    shutil.copytree(source, target)
    path = target / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **config}), "utf-8")
    return target


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [True, False])
def test_packed_layers_compute_the_same(dtype: torch.dtype, bias: bool) -> None:
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(24, 40, bias=bias), torch.nn.Linear(40, 8)).to(
        dtype
    )
    rows = [torch.randn(1, count, 24, dtype=dtype) for count in (1, 3, 50)]
    with torch.inference_mode():
        expected = [plain(x) for x in rows]
        pack_linears(plain)
        assert all(isinstance(layer, PackedLinear) == can_pack(dtype) for layer in plain)
        tolerance = 1e-6 if dtype == torch.float32 else 1e-2
        for x, y in zip(rows, expected, strict=True):
            torch.testing.assert_close(plain(x), y, rtol=tolerance, atol=tolerance)


def test_a_model_with_windows_is_refused(tiny_path: Path, tmp_path: Path) -> None:
    kinds = ["full_attention", "sliding_attention", "full_attention"]
    folder = altered(tiny_path, tmp_path / "windows", layer_types=kinds)
    with pytest.raises(CapabilityError, match="sliding_attention"):
        Network.load(folder, EXACT)


def test_a_model_with_a_global_window_is_refused(tiny_path: Path, tmp_path: Path) -> None:
    folder = altered(tiny_path, tmp_path / "m", model_type="mistral", sliding_window=8)
    with pytest.raises(CapabilityError, match="sliding_window"):
        Network.load(folder, EXACT)


def test_positions_that_depend_on_the_length_are_refused(tiny_path: Path, tmp_path: Path) -> None:
    rope = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
    folder = altered(tiny_path, tmp_path / "rope", rope_parameters=rope)
    with pytest.raises(CapabilityError, match="dynamic"):
        Network.load(folder, EXACT)


def test_a_model_without_attention_is_refused(tmp_path: Path) -> None:
    config = MambaConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, state_size=4)
    MambaForCausalLM(config).save_pretrained(tmp_path)
    with pytest.raises(CapabilityError):
        Network.load(tmp_path, EXACT)


def test_models_can_be_loaded_side_by_side(tiny_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        loaded = list(threads.map(lambda _: Network.load(tiny_path, EXACT), range(12)))
    read = [
        network.forward([Span(0, range(3), (5, 6, 7), True)])[0].logits[0] for network in loaded
    ]
    assert all((logits == read[0]).all() for logits in read)
