"""What a folder says, and what is wrong with it: typed errors that name the file and the key."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.decoding.diffusion.models import published as p
from weft.core.errors import CapabilityError
from weft.decoding.config_fields import ConfigFields
from weft.decoding.diffusion.models import is_diffusion, load, tokenizer_folder
from weft.decoding.diffusion.models.architecture import config_of
from weft.decoding.diffusion.models.families import FAMILIES
from weft.decoding.diffusion.models.folder import family_in, traits_of
from weft.decoding.network.options import NetworkOptions

EXACT = NetworkOptions(dtype="float32", threads=1)
WITHOUT: Any = object()


def folder(tmp_path: Path, config: dict[str, Any], **more: Any) -> Path:
    said = {key: value for key, value in (config | more).items() if value is not WITHOUT}
    return p.write(tmp_path / "model", said, p.llada_weights(p.LLADA))


def read(path: Path, vocabulary: int = 200_000) -> Any:
    config = ConfigFields.read(path / "config.json")
    return traits_of(path, config, family_in(config), vocabulary)


def test_recognising_a_folder_takes_its_config_only_and_no_torch(tmp_path: Path) -> None:
    path = p.write(tmp_path / "model", p.LLADA)
    code = (
        "import sys; from pathlib import Path; from weft.decoding.diffusion.models import"
        f" is_diffusion; assert is_diffusion(Path({str(path)!r}));"
        " assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        (p.LLADA, True),
        (p.DREAM, True),
        ({"architectures": ["LLaDA2MoeModelLM"]}, True),
        ({"model_type": "diffusion_gemma"}, True),
        (p.own("llama"), True),
        ({"model_type": "llama"}, False),
        ({"model_type": "gpt2", "weft_diffusion": {}}, False),
        ({"model_type": "llama", "weft_diffusion": 3}, False),
        ({"model_type": ["llada"]}, False),
        ({}, False),
    ],
)
def test_what_is_a_diffusion_model(config: dict[str, Any], answer: bool, tmp_path: Path) -> None:
    assert is_diffusion(p.write(tmp_path / "model", config)) is answer


@pytest.mark.parametrize("text", ["", "[", "[]", "[" * 100_000, " " * (2 << 20), "\xff", "null"])
def test_a_config_that_is_none_is_no_diffusion_model(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text, "latin-1")
    assert not is_diffusion(tmp_path)
    with pytest.raises(CapabilityError, match=r"config\.json"):
        load(tmp_path, EXACT)


def test_no_folder_is_no_diffusion_model(tmp_path: Path) -> None:
    assert not is_diffusion(tmp_path / "nowhere")


# what of a folder's config.json is changed, and what the error must say
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "missing size": ({"n_layers": WITHOUT}, "n_layers"),
    "text for a size": ({"d_model": "32"}, "d_model"),
    "true for a size": ({"n_heads": True}, "n_heads"),
    "huge": ({"n_layers": 10**9}, "n_layers"),
    "negative": ({"embedding_size": -1}, "embedding_size"),
    "nothing": ({"mlp_hidden_size": 0}, "mlp_hidden_size"),
    "no divisor": ({"n_kv_heads": 3}, "n_kv_heads"),
    "no multiple": ({"d_model": 33}, "d_model"),
    "infinite angle": ({"rope_theta": float("inf")}, "rope_theta"),
    "other norm": ({"layer_norm_type": "default"}, "layer_norm_type"),
    "other block": ({"block_type": "sequential"}, "block_type"),
    "biases": ({"include_bias": True}, "include_bias"),
    "alibi": ({"alibi": True}, "alibi"),
    "clipped": ({"clip_qkv": 3.0}, "clip_qkv"),
    "quantised": ({"quantization_config": {"bits": 4}}, "quantization_config"),
    "mask too large": ({"mask_token_id": p.VOCABULARY}, "mask_token_id"),
    "no mask": ({"mask_token_id": WITHOUT}, "mask_token_id"),
    "end too large": ({"eos_token_id": [1, 10**6]}, "eos_token_id"),
    "odd turns": ({"rope_scaling": {"rope_type": "dynamic"}}, "rope_scaling.rope_type"),
    "no object": ({"rope_scaling": [1]}, "rope_scaling"),
    "more layers": ({"n_layers": 3}, "model.layers.2"),
    "fewer layers": ({"n_layers": 1}, "model.layers.1"),
    "larger table": ({"embedding_size": 10**6}, "embed_tokens"),
    "tied": ({"weight_tying": "yes"}, "weight_tying"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_config_is_refused_by_its_key(case: str, tmp_path: Path) -> None:
    change, said = WRONG[case]
    path = folder(tmp_path, p.LLADA, **change)
    with pytest.raises(CapabilityError) as caught:
        load(path, EXACT)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    key=st.sampled_from(sorted(p.LLADA)),
    value=st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.lists(st.integers(-5, 80), max_size=3)
    | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
def test_no_value_of_a_config_gets_past_the_types(
    key: str, value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("fuzzed")
    said = json.dumps(p.LLADA | {key: value})
    (path / "config.json").write_text(said)
    config = ConfigFields.read(path / "config.json")
    refusals = []
    try:
        family = family_in(config)
        assert family.body is not None
        shape = config_of(config, family, family.body)
        traits_of(path, config, family, shape.vocab_size)
    except CapabilityError as error:
        refusals.append(str(error))
    assert all("config.json" in refusal for refusal in refusals)


@pytest.mark.parametrize(
    ("without", "more", "said"),
    [
        ("blocks.1.ff_proj", {}, "model.layers.1.mlp.gate_proj"),
        ("transformer.ff_out", {}, "lm_head"),
        ("nothing", {"surprise.weight": 1}, "surprise"),
        ("nothing", {"model.transformer.ln_f.weight": 31}, "model.norm.weight is"),
    ],
)
def test_weights_that_do_not_fit_are_refused_by_name(
    without: str, more: dict[str, int], said: str, tmp_path: Path
) -> None:
    weights = {k: v for k, v in p.llada_weights(p.LLADA).items() if without not in k}
    weights |= {name: torch.ones(size) for name, size in more.items()}
    with pytest.raises(CapabilityError, match=said):
        load(p.write(tmp_path / "model", p.LLADA, weights), EXACT)


def test_pickled_and_broken_weights_are_not_read(tmp_path: Path) -> None:
    path = p.write(tmp_path / "model", p.LLADA)
    (path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(CapabilityError, match="safetensors"):
        load(path, EXACT)
    (path / "model.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(CapabilityError, match=r"model\.safetensors"):
        load(path, EXACT)


def test_an_index_cannot_point_out_of_its_folder(tmp_path: Path) -> None:
    path = p.write(tmp_path / "model", p.LLADA)
    index = {"metadata": {}, "weight_map": {"a": "../other/model.safetensors"}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CapabilityError, match="no file of the folder"):
        load(path, EXACT)


@pytest.mark.parametrize("family", [one for one in FAMILIES if one.body is None])
def test_families_that_are_not_run_say_why(family: Any, tmp_path: Path) -> None:
    path = p.write(tmp_path / "model", {"model_type": family.model_type})
    assert is_diffusion(path)
    with pytest.raises(CapabilityError, match=family.model_type) as caught:
        load(path, EXACT)
    assert caught.value.hint


def test_the_published_special_tokens_are_found(tmp_path: Path) -> None:
    """As the tokenizer says; else as the family is known to have them."""
    big = p.LLADA | {"embedding_size": 126464, "vocab_size": 126464, "mask_token_id": 126336}
    big["eos_token_id"] = 126081
    tokens = {"<|endoftext|>": 126081, "<|eot_id|>": 126348, "<|mdm_mask|>": 126336}
    there = read(p.write(tmp_path / "a", big, tokens=tokens), 126464)
    assert there.end_ids == {126081, 126348}
    assert there.banned == {126336}
    plain = {k: v for k, v in big.items() if k not in {"mask_token_id", "eos_token_id"}}
    known = read(p.write(tmp_path / "b", plain), 126464)
    assert (known.mask_id, known.end_ids) == (126336, {126081, 126348})
    other = read(p.write(tmp_path / "c", big | {"mask_token_id": 5}), 126464)
    assert other.mask_id == 5


def test_the_mask_of_a_tiny_a2d_is_its_tokenizers(tmp_path: Path) -> None:
    config = p.a2d("qwen3") | {"vocab_size": 152000}
    path = p.write(tmp_path / "model", config, tokens={"<|mask|>": 151669, "<|im_end|>": 151645})
    assert read(path, 152000).mask_id == 151669
    named = json.loads((path / "tokenizer_config.json").read_text()) | {"mask_token": "[M]"}
    named["added_tokens_decoder"]["7"] = {"content": "[M]"}
    (path / "tokenizer_config.json").write_text(json.dumps(named))
    assert read(path, 152000).mask_id == 7
    (path / "tokenizer_config.json").unlink()
    with pytest.raises(CapabilityError, match="mask_token_id"):
        read(path, 152000)
    added = {"added_tokens": [{"content": "<|mask|>", "id": 9}, 3, {"id": 4}]}
    (path / "tokenizer.json").write_text(json.dumps(added))
    assert read(path, 152000).mask_id == 9


def test_how_a_tiny_a2d_was_trained_is_told_by_its_folder(tmp_path: Path) -> None:
    config = p.a2d("qwen3") | {"mask_token_id": 3}
    assert read(p.write(tmp_path / "Qwen3-0.6B-diffusion-mdlm-v0.1", config)).attention == "full"
    blocks = read(p.write(tmp_path / "Qwen3-0.6B-diffusion-bd3lm-v0.1", config))
    assert (blocks.attention, blocks.block) == ("block_causal", 32)
    said = read(p.write(tmp_path / "Another-bd3lm", config | {"block_size": 8}))
    assert said.block == 8


def test_rows_that_only_fill_the_table_up_are_never_written(tmp_path: Path) -> None:
    config = p.LLADA | {"vocab_size": p.VOCABULARY - 2}
    traits = read(p.write(tmp_path / "model", config), p.VOCABULARY)
    assert traits.banned == {p.MASK, p.VOCABULARY - 2, p.VOCABULARY - 1}


def test_ends_are_those_of_the_generation_config_too(tmp_path: Path) -> None:
    path = p.write(tmp_path / "a", p.LLADA, generation={"eos_token_id": [p.OTHER_END]})
    assert read(path, p.VOCABULARY).end_ids == {p.END, p.OTHER_END}
    ours = p.write(tmp_path / "b", p.own("llama"), generation={"eos_token_id": 7})
    assert read(ours, p.VOCABULARY).end_ids == {p.END, 7}
    told = p.write(tmp_path / "c", p.own("llama", end_ids=[9]), generation={"eos_token_id": 7})
    assert read(told, p.VOCABULARY).end_ids == {9}


@pytest.mark.parametrize(
    ("traits", "said"),
    [
        ({"format": 2}, "weft_diffusion.format"),
        ({"attention": "sparse"}, "weft_diffusion.attention"),
        ({"attention": "block_causal"}, "weft_diffusion.block"),
        ({"attention": "block_causal", "block": 0}, "weft_diffusion.block"),
        ({"block": 4}, "weft_diffusion.block"),
        ({"mask_id": 64}, "weft_diffusion.mask_id"),
        ({"mask_id": None}, "weft_diffusion.mask_id"),
        ({"shifted": 1}, "weft_diffusion.shifted"),
        ({"banned": [1, "2"]}, "weft_diffusion.banned"),
        ({"end_ids": [p.MASK]}, "weft_diffusion.end_ids"),
        ({"base": "../../etc"}, "weft_diffusion.base"),
        ({"base": "nowhere"}, "weft_diffusion.base"),
    ],
)
def test_a_wrong_format_of_ours_is_refused_by_its_key(
    traits: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(CapabilityError, match=said):
        load(p.write(tmp_path / "model", p.own("llama", **traits)), EXACT)


def test_the_tokenizer_of_a_folder_is_its_own_if_it_has_one(tmp_path: Path) -> None:
    base = p.write(tmp_path / "base", p.LLADA)
    ours = p.write(tmp_path / "ours", p.own("llama", base="base"))
    assert tokenizer_folder(ours) == base
    assert tokenizer_folder(base) == base
    (ours / "tokenizer.json").write_text("{}")
    assert tokenizer_folder(ours) == ours
    far = p.write(tmp_path / "far", p.own("llama", base="smollm"))
    assert tokenizer_folder(far, lambda name: tmp_path / name) == tmp_path / "smollm"
