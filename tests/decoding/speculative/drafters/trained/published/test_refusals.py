"""Wrong folders of published drafters: the error names the file and the key."""

from __future__ import annotations

import os
import pickle  # noqa: TID251 - writes what must not be read
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.decoding.speculative.drafters.trained.published import formats
from weft.core.errors import CapabilityError
from weft.decoding.network.network import Network
from weft.decoding.speculative.presets import made

MAKE = {
    "eagle": formats.specforge,
    "speculators": formats.speculators,
    "medusa": formats.medusa_published,
    "vllm": formats.medusa_shared,
    "dflash": formats.z_lab,
}
DECODERS = {"speculators": "eagle", "vllm": "medusa"}


def refusal(kind: str, folder: Path, network: Network) -> str:
    with pytest.raises(CapabilityError) as caught:
        made(DECODERS.get(kind, kind), network, {"model": str(folder)})
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("eagle", {"num_hidden_layers": 2}, "num_hidden_layers"),
        ("eagle", {"hidden_size": 64}, "hidden_size"),
        ("eagle", {"hidden_act": "gelu"}, "hidden_act"),
        ("eagle", {"model_type": "mistral"}, "model_type"),
        ("eagle", {"vocab_size": 5}, "vocab_size"),
        ("eagle", {"draft_vocab_size": 10**6}, "draft_vocab_size"),
        ("eagle", {"attention_bias": True}, "attention_bias"),
        ("eagle", {"norm_before_fc": True}, "norm_before_fc"),
        ("eagle", {"fc_norm": True}, "fc_norm"),
        ("eagle", {"norm_output": True}, "norm_output"),
        ("eagle", {"target_hidden_size": 9}, "target_hidden_size"),
        ("eagle", {"num_key_value_heads": 3}, "num_key_value_heads"),
        ("eagle", {"head_dim": 15}, "head_dim"),
        ("eagle", {"logit_scale": 0.5}, "logit_scale"),
        ("eagle", {"pard_token": 7}, "pard_token"),
        ("eagle", {"clever_new_gate": True}, "clever_new_gate"),
        ("eagle", {"quantization_config": {"quant_method": "fp8"}}, "quantization_config"),
        ("eagle", {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "rope_scaling"),
        ("eagle", {"rope_scaling": {"rope_type": "longrope"}}, "rope_scaling.rope_type"),
        ("eagle", {"eagle_config": {"use_aux_hidden_state": False}}, "eagle_config.use_aux"),
        ("eagle", {"eagle_config": {"norm": 1}}, "eagle_config.norm"),
        ("eagle", {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 1]}}, "layer_ids"),
        ("eagle", {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3]}}, "layer_ids"),
        ("eagle", {"speculators_model_type": "dflash"}, "speculators_model_type"),
        ("eagle", {"speculators_model_type": "eagle3"}, "transformer_layer_config"),
        ("speculators", {"norm_before_residual": None}, "norm_before_residual"),
        ("medusa", {"medusa_num_heads": 0}, "medusa_num_heads"),
        ("medusa", {"medusa_num_layers": 9}, "medusa_num_layers"),
        ("medusa", {"vocab_size": 7}, "vocab_size"),
        ("medusa", {"medusa_lm_norm": True}, "medusa_lm_norm"),
        ("vllm", {"truncated_vocab_size": 10**6}, "truncated_vocab_size"),
        ("dflash", {"num_target_layers": 36}, "num_target_layers"),
        ("dflash", {"model_type": "llama"}, "model_type"),
        ("dflash", {"is_causal": True}, "is_causal"),
        ("dflash", {"is_neox_style": False}, "is_neox_style"),
        ("dflash", {"layer_types": ["sliding_attention", "full_attention"]}, "layer_types"),
        ("dflash", {"block_size": 1}, "block_size"),
        ("dflash", {"dflash_config": {"target_layer_ids": [0, 1]}}, "mask_token_id"),
        ("dflash", {"dflash_config": {"mask_token_id": 1}}, "target_layer_ids"),
        # what leaves the last layer is read in two ways
        (
            "dflash",
            {"dflash_config": {"mask_token_id": 1, "target_layer_ids": [0, 2]}},
            "dflash_config.target_layer_ids",
        ),
        (
            "dflash",
            {"dflash_config": {"mask_token_id": 1, "target_layer_ids": [0, 1], "causal": True}},
            "dflash_config.causal",
        ),
        (
            "dflash",
            {"dflash_config": {"mask_token_id": 1, "target_layer_ids": [0, 1], "markov_rank": 4}},
            "dflash_config.markov_rank",
        ),
    ],
)
def test_a_config_that_is_not_run_is_refused_by_its_key(
    kind: str, change: dict[str, Any], said: str, network: Network, tmp_path: Path
) -> None:
    config, weights = MAKE[kind](network.vocabulary_size)
    folder = formats.write(tmp_path / "head", config | change, weights)
    refused = refusal(kind, folder, network)
    assert str(folder / "config.json") in refused
    assert said in refused


@pytest.mark.parametrize("kind", MAKE)
def test_every_tensor_is_needed_and_of_one_shape(
    kind: str, network: Network, tmp_path: Path
) -> None:
    config, weights = MAKE[kind](network.vocabulary_size)
    optional = {"t2d", "embed_tokens.weight", *(name for name in weights if "bias" in name)}
    late = tuple(f"{head}." for head in (3, 4))  # heads that the config does not count
    for name, tensor in weights.items():
        if name.startswith(late):
            continue
        longer = weights | {name: torch.cat([tensor, tensor])}
        folder = formats.write(tmp_path / f"{name}-longer", config, longer)
        refused = refusal(kind, folder, network)
        assert str(folder / "model.safetensors") in refused
        assert name in refused
        if name not in optional:
            rest = {other: part for other, part in weights.items() if other != name}
            folder = formats.write(tmp_path / f"{name}-missing", config, rest)
            assert f"{name} is missing" in refusal(kind, folder, network)
    more = formats.write(tmp_path / "more", config, weights | {"surprise.weight": torch.ones(3)})
    assert "surprise.weight is no part" in refusal(kind, more, network)


def nan(weights: formats.Weights) -> None:
    weights["fc.weight"][0, 0] = float("nan")


def far(weights: formats.Weights) -> None:
    weights["d2t"][3] = 10**6


def twice(weights: formats.Weights) -> None:
    weights["d2t"][1] = weights["d2t"][0] - 1


def real(weights: formats.Weights) -> None:
    weights["d2t"] = weights["d2t"].float()


def other(weights: formats.Weights) -> None:
    weights["t2d"] = weights["t2d"].roll(1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (nan, "fc.weight holds no finite numbers"),
        (far, "d2t does not lead"),
        (twice, "d2t does not lead"),
        (real, "d2t holds no whole numbers"),
        (other, "t2d says of other tokens"),
    ],
)
def test_tables_that_contradict_are_refused(
    change: Callable[[formats.Weights], None], said: str, network: Network, tmp_path: Path
) -> None:
    config, weights = formats.safeai(network.vocabulary_size)
    change(weights)
    assert said in refusal("eagle", formats.write(tmp_path / "head", config, weights), network)


class Code:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("made-by-a-pickle",)


@pytest.mark.parametrize("file", ["pytorch_model.bin", "medusa_lm_head.pt"])
def test_a_pickle_runs_nothing(
    file: str, network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config, _ = formats.medusa_published(network.vocabulary_size)
    folder = formats.write(tmp_path / "heads", config, None)
    for content in (pickle.dumps(Code()), b"", b"\x80\x04.", pickle.dumps({"a": Code()})):
        (folder / file).write_bytes(content)
        assert str(folder / file) in refusal("medusa", folder, network)
    torch.save([torch.ones(2)], folder / file)
    assert "something else than tensors" in refusal("medusa", folder, network)
    assert not (tmp_path / "made-by-a-pickle").exists()


def test_no_weights_and_an_index_that_leaves_the_folder(network: Network, tmp_path: Path) -> None:
    config, _ = formats.safeai(network.vocabulary_size)
    folder = formats.write(tmp_path / "head", config, None)
    assert "has no weights" in refusal("eagle", folder, network)
    index = folder / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"fc.weight": "../other.safetensors"}}')
    assert "no file of the folder" in refusal("eagle", folder, network)


def test_a_mask_beside_must_be_of_the_same_token(network: Network, tmp_path: Path) -> None:
    config, weights = formats.z_lab(network.vocabulary_size)
    folder = formats.write(tmp_path / "drafter", config, weights)
    mask = {"mask_token_id": 12, "embedding": torch.ones(network.width)}
    torch.save(mask, folder / "mask_embedding.pt")
    assert "mask_embedding.pt: mask_token_id is not 11" in refusal("dflash", folder, network)


def test_embeddings_of_another_model_are_refused(network: Network, tmp_path: Path) -> None:
    config, weights = formats.z_lab(network.vocabulary_size)
    theirs = network.embed(range(network.vocabulary_size))
    same = formats.write(tmp_path / "a", config, weights | {"embed_tokens.weight": theirs})
    assert made("dflash", network, {"model": str(same)})
    own = weights | {"embed_tokens.weight": theirs + 1}
    folder = formats.write(tmp_path / "b", config, own)
    assert "embed_tokens.weight is not the model's" in refusal("dflash", folder, network)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    kind=st.sampled_from(sorted(MAKE)),
    at=st.integers(0, 60),
    value=st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.lists(st.integers(-5, 80), max_size=3)
    | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
def test_any_value_of_a_config_is_read_or_a_typed_error(
    kind: str, at: int, value: Any, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> None:
    config, weights = MAKE[kind](network.vocabulary_size)
    key = sorted(config)[at % len(config)]
    folder = formats.write(tmp_path_factory.mktemp("fuzzed") / "x", config | {key: value}, weights)
    refusals = []
    try:
        made(DECODERS.get(kind, kind), network, {"model": str(folder)}).begin()
    except CapabilityError as error:
        refusals.append(str(error))
    assert all(str(folder) in refused for refused in refusals)
