"""What cannot work is refused before anything starts, with the reason and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.serving.vllm.launch.engines import CPU, CUDA, EIGHT_CORES, adapter, canvas_model, model
from weft.core.errors import ModelNotFound, SpecError
from weft.serving.vllm.launch import diffusion
from weft.serving.vllm.launch.command import Launch, launch
from weft.serving.vllm.launch.decoders import parse_decode
from weft.serving.vllm.launch.engine import Engine
from weft.serving.vllm.launch.spec import ServeSpec

COUNTS = ("num_attention_heads", "num_key_value_heads", "num_hidden_layers")


def start(folder: Path, engine: Engine = CPU, **asked: Any) -> Launch:
    place = asked.pop("model", None) or model(folder, **asked.pop("config", {}))
    return launch(ServeSpec(place, **asked), engine, 8123, machine=EIGHT_CORES)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"tp": 3}, "tp 3 does not divide the 8 attention heads of tiny (tp can be 1 or 2 or 4 or"),
        ({"tp": 2, "config": {"num_attention_heads": 9, "num_key_value_heads": 3}}, "does not"),
        ({"tp": 6, "config": {"num_attention_heads": 12, "num_key_value_heads": 4}}, "one another"),
        ({"pp": 5}, "pp 5 is more than the 4 layers"),
        ({"max_context_tokens": 4096}, "made for 2,048 tokens, not 4,096"),
        ({"max_batched_tokens": 8, "max_seqs": 9}, "a token each"),
        ({"max_batched_tokens": 1024, "chunked_prefill": False}, "must fit one pass"),
        ({"device": "cuda"}, "serves on cpu"),
        ({"nodes": 2, "tp": 2}, "vLLM refuses Ray on a CPU"),
        ({"decode": parse_decode("mtp")}, "no layers for multi-token prediction"),
        ({"decode": parse_decode("ngram_gpu:3")}, "does not run on a CPU"),
        ({"served_name": "--port"}, "cannot be called '--port'"),
        ({"extra": ("--max-nun-seqs", "3")}, "did you mean --max-num-seqs"),
        ({"extra": ("--port=1",)}, "set `port` instead"),
        ({"extra": ("--api_key", "s3cret")}, "set `api_key_env` instead"),
        ({"extra": ("--scheduling-policy", "fcfs")}, "weft's to set"),
        ({"extra": ("--ssl-keyfile", "key.pem")}, "would not speak plain HTTP"),
        ({"extra": ("--ssl_certfile=cert.pem",)}, "a proxy that speaks TLS in front"),
        ({"extra": ("--grpc",)}, "would not speak plain HTTP"),
        ({"tp": 2, "extra": ("--nnodes", "3")}, "cannot be dealt out over --nnodes 3"),
        ({"extra": ("--nnodes=two",)}, "--nnodes is 'two'"),
        ({"extra": ("--headless",), "replicas": 2}, "replicas are servers"),
        ({"api_key_env": "WEFT_NOT_SET"}, "WEFT_NOT_SET, which should hold the key"),
        ({"api_key_env": "sk-12345"}, "never write the key itself"),
        ({"adapters": {"tiny": "x"}}, "both called 'tiny'"),
        ({"adapters": {"law": "nowhere"}}, "adapter 'law' cannot be read"),
    ],
)
def test_refusals(tmp_path: Path, asked: dict[str, Any], says: str) -> None:
    with pytest.raises(SpecError) as refused:
        start(tmp_path, **asked)
    assert says in str(refused.value)
    assert "s3cret" not in str(refused.value)
    assert "12345" not in str(refused.value)


@pytest.mark.parametrize(
    ("engine", "triton", "asked", "says"),
    [
        (CPU, True, {}, "blocks is a diffusion model, and vLLM cannot run one here: this vLLM com"),
        (CUDA, False, {}, "Triton is not installed"),
        (CUDA, True, {"adapters": {"law": "x"}}, "takes no adapters (merge"),
        (CUDA, True, {"decode": parse_decode("ngram:4")}, "for models that write on"),
        (CUDA, True, {"decode": parse_decode("adaptive")}, "looks at decided slots"),
        (CUDA, True, {"decode": parse_decode("threshold:1.5")}, "threshold must be a number from"),
    ],
)
def test_a_diffusion_model_is_refused_where_vllm_cannot_fill_canvases(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: Engine,
    triton: bool,
    asked: dict[str, Any],
    says: str,
) -> None:
    monkeypatch.setattr(diffusion, "find_spec", lambda _: triton or None)
    with pytest.raises(SpecError) as refused:
        start(tmp_path, engine, model=canvas_model(tmp_path), **asked)
    assert says in str(refused.value)


def test_experts_are_refused_before_vllm_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diffusion, "find_spec", lambda _: True)
    folder = model(tmp_path, "llada2", model_type="llada2_moe", vocab_size=64, mask_token_id=61)
    with pytest.raises(
        SpecError, match="llada2_moe: weft's path in vLLM has no experts"
    ) as refused:
        start(tmp_path, CUDA, model=folder)
    assert "use: local" in str(refused.value.hint)


def test_a_model_that_writes_on_has_no_decoder_of_diffusion_models(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="'factor' is for diffusion models"):
        start(tmp_path, decode=parse_decode("factor:2"))


def test_a_canvas_that_is_asked_for_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diffusion, "find_spec", lambda _: True)
    wish = ("--diffusion-config", '{"canvas_length": 16}')
    argv = start(tmp_path, CUDA, model=canvas_model(tmp_path), extra=wish).argv
    assert argv.count("--diffusion-config") == 1


@pytest.mark.parametrize("rank", [0, 513, "16", None])
def test_an_adapter_of_no_usable_rank(tmp_path: Path, rank: object) -> None:
    with pytest.raises(SpecError, match="rank"):
        start(tmp_path, adapters={"law": adapter(tmp_path, "law", rank)})


def test_more_nodes_than_ranks(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="3 nodes have only 2 ranks"):
        start(tmp_path, CUDA, nodes=3, tp=2)


def test_a_flag_that_the_installed_version_lacks(tmp_path: Path) -> None:
    older = Engine("vllm", "0.20.0", "cuda", CUDA.flags - {"--reasoning-parser"})
    with pytest.raises(SpecError, match=r"vllm 0\.20\.0 has no --reasoning-parser"):
        start(tmp_path, older, reasoning_parser="qwen3")
    assert start(tmp_path, older, model=str(tmp_path / "tiny"))


@pytest.mark.parametrize(
    "asked",
    [
        {"tp": 8},  # more ranks than key-value heads: vLLM copies them
        {"max_context_tokens": 9999, "config": {"rope_scaling": {"rope_type": "yarn"}}},
        {"decode": parse_decode("mtp"), "config": {"num_nextn_predict_layers": 1}},
        {"tp": 7, "pp": 9, "config": dict.fromkeys(COUNTS, "many")},
        {"tp": 2, "config": {"text_config": {"num_attention_heads": 2}, "num_attention_heads": 3}},
    ],
)
def test_what_may_work_is_not_refused(tmp_path: Path, asked: dict[str, Any]) -> None:
    assert start(tmp_path, CUDA, **asked).argv


def test_a_model_that_is_nowhere(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="models by name"):
        start(tmp_path, model="no-such-model")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelNotFound):
        start(tmp_path, model=str(tmp_path / "empty"))


@pytest.mark.parametrize("config", ["[]", "{", "\xff"])
def test_a_config_that_is_none(tmp_path: Path, config: str) -> None:
    place = tmp_path / "odd"
    place.mkdir()
    (place / "config.json").write_text(config, encoding="latin-1")
    with pytest.raises(SpecError, match=r"config\.json"):
        start(tmp_path, model=str(place))


def test_vllms_own_variable_for_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "2")
    assert "--kv-cache-memory-bytes" not in start(tmp_path).argv
    with pytest.raises(SpecError, match="unset VLLM_CPU_KVCACHE_SPACE"):
        start(tmp_path, model=str(tmp_path / "tiny"), kv_cache_bytes=2**30)
