"""Sizes of known models against their published totals, and configs that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from weft.core.errors import ModelNotFound, SpecError
from weft.serving.plan import SHAPES, Architecture, find_architecture
from weft.serving.plan.config import architecture, read_config


def shape(name: str, **changed: object) -> Architecture:
    fields = {**SHAPES[name].fields, **changed}
    return architecture({k: v for k, v in fields.items() if v != "gone"}, name)


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("smollm2-135m-instruct", 0.134515008),  # as safetensors of the model count them
        ("llama-3.1-8b", 8.030261248),
        ("llama-3.1-70b", 70.553706496),
        ("llama-3.1-405b", 405.8533888),
        ("qwen3-8b", 8.19073536),
        ("qwen3-32b", 32.762123264),
        ("qwen3-235b-a22b", 235.09363456),
        ("mixtral-8x7b", 46.702792704),
        ("deepseek-v3", 671.026404352),
    ],
)
def test_parameters_are_those_of_the_published_weights(name: str, billions: float) -> None:
    assert shape(name).parameters == round(billions * 1e9)


def test_active_parameters_leave_out_idle_experts() -> None:
    assert round(shape("qwen3-235b-a22b").active_parameters / 1e9) == 22
    assert round(shape("mixtral-8x7b").active_parameters / 1e9, 1) == 12.9
    dense = shape("llama-3.1-8b")
    assert dense.active_parameters == dense.parameters


def test_qwen2_has_biases_on_queries_keys_and_values() -> None:
    plain = shape("llama-3.1-8b")
    biased = shape("llama-3.1-8b", model_type="qwen2")
    assert biased.parameters - plain.parameters == 32 * (32 + 2 * 8) * 128


@pytest.mark.parametrize(
    ("name", "tp", "elements"),
    [
        ("llama-3.1-70b", 1, 2 * 8 * 128),
        ("llama-3.1-70b", 8, 2 * 128),
        ("qwen3-235b-a22b", 8, 2 * 128),  # 4 heads on 8 ranks: one each, repeated
        ("deepseek-v3", 8, 512 + 64),  # a latent cache is whole on every rank
    ],
)
def test_kv_cache_of_one_layer(name: str, tp: int, elements: int) -> None:
    assert shape(name).kv_elements(tp) == elements


def test_windows_and_dense_layers_are_read() -> None:
    kinds = ["sliding_attention", "full_attention"] * 16
    mixed = shape("llama-3.1-8b", sliding_window=1024, layer_types=kinds)
    assert (mixed.window, mixed.windowed_layers) == (1024, 16)
    unused = shape("llama-3.1-8b", sliding_window=1024, use_sliding_window=False)
    assert (unused.window, unused.windowed_layers) == (None, 0)
    assert shape("deepseek-v3").dense_layers == {0, 1, 2}
    sparse = shape("qwen3-235b-a22b", decoder_sparse_step=2, mlp_only_layers=[1])
    assert sparse.has_experts(3)
    assert not sparse.has_experts(1)
    assert not sparse.has_experts(2)


def test_a_nested_decoder_is_found() -> None:
    fields = {"model_type": "seeing", "text_config": dict(SHAPES["llama-3.1-8b"].fields)}
    assert architecture(fields, "seeing").parameters == shape("llama-3.1-8b").parameters


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"hidden_size": "gone"}, "`hidden_size`"),
        ({"num_hidden_layers": None}, "`num_hidden_layers`"),
        ({"vocab_size": 0}, "`vocab_size`"),
        ({"vocab_size": True}, "`vocab_size`"),
        ({"num_attention_heads": "32"}, "`num_attention_heads`"),
        ({"intermediate_size": 2.5}, "`intermediate_size`"),
        ({"num_hidden_layers": 10**9}, "`num_hidden_layers`"),
        ({"tie_word_embeddings": "yes"}, "`tie_word_embeddings`"),
        ({"num_attention_heads": 33}, "`head_dim`"),
        ({"num_experts": 4}, "`num_experts_per_tok`"),
        ({"num_experts": 4, "num_experts_per_tok": 5}, "5 of 4 experts"),
        ({"kv_lora_rank": 512}, "`qk_nope_head_dim`"),
        ({"quantization_config": {"quant_method": "bitnet"}}, "'bitnet'"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 8}}, "8 bits"),
    ],
)
def test_a_wrong_config_names_its_field(changed: Mapping[str, object], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        shape("llama-3.1-8b", **changed)
    assert said in caught.value.message


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"a":' * 2000])
def test_a_file_that_is_no_config(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(SpecError):
        read_config(tmp_path / "config.json", "x")


def test_a_folder_is_read_before_a_known_name(tmp_path: Path) -> None:
    fields = {**SHAPES["qwen3-8b"].fields, "num_hidden_layers": 2}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    found, weights = find_architecture(str(tmp_path))
    assert (found.layers, weights) == (2, str(tmp_path))


def test_known_names_need_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    found, weights = find_architecture("Llama-3.1-70B")
    assert (found.layers, weights) == (80, "meta-llama/Llama-3.1-70B-Instruct")
    with pytest.raises(ModelNotFound) as caught:
        find_architecture("llama-9")
    assert "llama-3.1-70b" in str(caught.value.hint)
