"""Weft's own drafters in vLLM's formats: key by key, and read back they draft the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.decoding.speculative.decoder_fixtures import hopeful
from tests.decoding.speculative.drafters.trained.published import formats, slow
from tests.decoding.speculative.rows import SHAPINGS, alone, plain
from weft.core.errors import CapabilityError, InputError
from weft.decoding.network.network import Network
from weft.decoding.speculative import trained_drafter
from weft.decoding.speculative.loop import DecodeLimits
from weft.decoding.speculative.presets import made
from weft.training.corpus import Corpus, TrainingText
from weft.training.drafters.export import export_drafter
from weft.training.drafters.spec import kind_of
from weft.training.frame import Schedule, Trainer
from weft.training.teacher import Teacher

KINDS = ("dflash", "eagle", "medusa")
SMALL = {
    "inner": 32,
    "vocabulary": 90,
    "unrolled": 2,
    "block": 4,
    "layers": 2,
    "places": 8,
    "heads": 2,
    "tokens": 90,
    "form": 2,
}
LINE = [11, 40, 7, 90, 33, 61]
PROMPTS = ([5, 9, 5, 9, 5, 9, 17], LINE * 2)
LIMITS = DecodeLimits(20)
LAYER = [
    "input_layernorm.weight",
    "mlp.down_proj.weight",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "post_attention_layernorm.weight",
    "self_attn.k_proj.weight",
    "self_attn.o_proj.weight",
    "self_attn.q_proj.weight",
    "self_attn.v_proj.weight",
]
TABLES = ["d2t", "lm_head.weight", "t2d"]
# what vLLM 0.32's llama_eagle3.py, qwen3_dflash.py and medusa.py load
KEYS = {
    "eagle": [
        *TABLES,
        "fc.weight",
        "norm.weight",
        "midlayer.hidden_norm.weight",
        *(f"midlayer.{name}" for name in LAYER),
    ],
    "dflash": [
        *TABLES,
        "fc.weight",
        "hidden_norm.weight",
        "norm.weight",
        *(f"layers.{layer}.{name}" for layer in range(2) for name in LAYER),
        *(f"layers.{n}.self_attn.{one}_norm.weight" for n in range(2) for one in "qk"),
    ],
    "medusa": [
        "lm_head.weight",
        "token_map",
        *(f"blocks.{n}.layers.0.{part}" for n in range(2) for part in ("bias", "weight")),
    ],
}


def trained(kind: str, network: Network, tiny_path: Path, folder: Path, form: int = 2) -> Path:
    """A drafter after a few steps."""
    corpus = Corpus([TrainingText(tuple((LINE * 4)[start : start + 16]), 4) for start in range(6)])
    spec = kind_of(kind)
    settings = {name: SMALL.get(name, 1) for name in spec.settings} | {"form": form}
    objective = spec.begin(Teacher.load(tiny_path), corpus, settings, 0)
    Trainer(objective, corpus, Schedule(steps=20, texts=6, rate=0.02), folder / "c").run()
    with torch.no_grad():
        drafter = objective.made(corpus)
    told = hopeful(drafter.settings) if kind == "medusa" else drafter.settings
    trained_drafter.save(folder, kind, told, drafter.tensors, network)
    return folder


@pytest.fixture(scope="module", params=KINDS)
def exported(
    request: pytest.FixtureRequest,
    network: Network,
    tiny_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Path, Path]:
    """Kind, weft's folder, and vLLM's."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "ours").mkdir()
    ours = trained(request.param, network, tiny_path, folder / "ours")
    written = export_drafter(ours, network, folder / "theirs")
    assert written.decode.endswith(f":{folder / 'theirs'}")
    return request.param, ours, written.folder


def test_the_keys_are_those_that_vllm_loads(exported: tuple[str, Path, Path]) -> None:
    kind, _, theirs = exported
    assert sorted(load_file(theirs / "model.safetensors")) == sorted(KEYS[kind])
    beside = {"config.json", "model.safetensors"}
    if kind == "dflash":
        beside.add("mask_embedding.pt")
    assert {file.name for file in theirs.iterdir()} == beside


def test_the_config_says_what_the_layers_are(exported: tuple[str, Path, Path]) -> None:
    kind, _, theirs = exported
    config: dict[str, Any] = json.loads((theirs / "config.json").read_text())
    tensors = load_file(theirs / "model.safetensors")
    if kind == "medusa":
        assert config["model_type"] == "medusa"
        assert (config["num_heads"], config["num_hidden_layers"]) == (2, 1)
        assert config["truncated_vocab_size"] == len(tensors["token_map"]) == 90
        return
    assert config["draft_vocab_size"] == len(tensors["d2t"]) == int(tensors["t2d"].sum()) == 90
    assert len(tensors["t2d"]) == config["vocab_size"]
    assert len(config["architectures"]) == 1
    assert config["intermediate_size"] == 32
    if kind == "eagle":
        assert config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [1, 2]
    else:
        assert config["dflash_config"]["target_layer_ids"] == [0]
        assert (config["block_size"], config["num_target_layers"]) == (4, 3)


def test_it_is_read_back_and_drafts_the_same(
    exported: tuple[str, Path, Path], network: Network
) -> None:
    kind, ours, theirs = exported
    options = {"num_speculative_tokens": 3} if kind == "medusa" else {}
    if kind == "eagle":
        options = {"tree": False, "depth": 3}
    for shaping in SHAPINGS:
        for prompt in PROMPTS:
            expected = plain(network, prompt, shaping, 3, LIMITS)
            counts = []
            for folder in (ours, theirs):
                method = made(kind, network, {"model": str(folder), **options})
                found, decoding = alone(network, prompt, method, shaping, 3, LIMITS)
                assert found == expected
                counts.append(decoding.counters)
            if kind != "medusa":  # its tree is shaped by an accuracy that vLLM has no place for
                assert counts[0] == counts[1]


def test_exported_heads_guess_as_vllm_computes_it(
    network: Network, tiny_path: Path, tmp_path: Path
) -> None:
    (tmp_path / "ours").mkdir()
    ours = trained("medusa", network, tiny_path, tmp_path / "ours")
    theirs = export_drafter(ours, network, tmp_path / "theirs").folder
    config = json.loads((theirs / "config.json").read_text())
    weights = {n: t.float() for n, t in load_file(theirs / "model.safetensors").items()}
    weights["token_map"] = weights["token_map"].long()
    state = torch.randn(network.width)
    tensors = load_file(ours / "model.safetensors")
    for head, logits in enumerate(slow.medusa_vllm(config, weights, state)):
        into = tensors[f"into.{head}.weight"].float(), tensors[f"into.{head}.bias"].float()
        made_of = state + torch.nn.functional.silu(into[0] @ state + into[1])
        ids = tensors["tokens"].long()
        torch.testing.assert_close(logits[ids], network.head(made_of[None])[0, ids])


def test_published_medusa_heads_become_vllms(network: Network, tmp_path: Path) -> None:
    """Biases included, which vLLM would leave out."""
    config, weights = formats.medusa_published(network.vocabulary_size)
    folder = formats.write(tmp_path / "heads", config, weights, "medusa_lm_head.pt")
    theirs = export_drafter(folder, network, tmp_path / "theirs").folder
    written = json.loads((theirs / "config.json").read_text())
    assert (written["num_heads"], written["medusa_fc_bias"]) == (3, True)
    tensors = load_file(theirs / "model.safetensors")
    assert sorted(tensors) == sorted(
        name
        for head in range(3)
        for name in (
            f"blocks.{head}.layers.0.weight",
            f"blocks.{head}.layers.0.bias",
            f"lm_heads.{head}.weight",
        )
    )
    state = torch.randn(network.width)
    torch.testing.assert_close(
        slow.medusa_vllm(written, tensors, state), slow.medusa(config, weights, state)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_weft_s_own_form_has_no_place_in_vllm(
    kind: str, network: Network, tiny_path: Path, tmp_path: Path
) -> None:
    (tmp_path / "ours").mkdir()
    folder = trained(kind, network, tiny_path, tmp_path / "ours", form=1)
    with pytest.raises(InputError, match="own form") as refused:
        export_drafter(folder, network, tmp_path / "theirs")
    assert "--set form=2" in str(refused.value.hint)
    assert not (tmp_path / "theirs").exists()


def test_what_cannot_be_exported_says_why(
    network: Network, tiny_path: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="exists already"):
        export_drafter(tmp_path, network, tmp_path)
    with pytest.raises(CapabilityError, match=r"config\.json"):
        export_drafter(tmp_path, network, tmp_path / "new")
    folder = formats.write(tmp_path / "a", {"weft_drafter": "ppd"}, None)
    with pytest.raises(InputError, match="'ppd'"):
        export_drafter(folder, network, tmp_path / "new")
    folder = formats.write(tmp_path / "b", formats.safeai(network.vocabulary_size)[0], None)
    with pytest.raises(InputError, match="published format already"):
        export_drafter(folder, network, tmp_path / "new")
    teacher, corpus = Teacher.load(tiny_path), Corpus([TrainingText((1, 2, 3), 1)])
    with pytest.raises(InputError, match="no form 3"):
        kind_of("eagle").begin(teacher, corpus, {**SMALL, "form": 3}, 0)
