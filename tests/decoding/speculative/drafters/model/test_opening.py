"""Draft models that cannot draft for a target are refused, and say why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from tests.serving.local.playback import EXACT
from weft.core.errors import CapabilityError, ModelNotFound, SpecError
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.model.draft_cache import load_draft_model, own_layers
from weft.decoding.speculative.presets import made
from weft.decoding.vocabularies import check_sizes, check_tokens


@pytest.fixture(scope="module")
def target(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


def copied(tiny_path: Path, folder: Path) -> Path:
    shutil.copytree(tiny_path, folder)
    return folder


def test_its_own_kind_is_taken(target: Network, tiny_path: Path, tmp_path: Path) -> None:
    draft = load_draft_model(target, str(copied(tiny_path, tmp_path / "draft")))
    assert draft.vocabulary_size == target.vocabulary_size
    assert draft.embed([0]).dtype == target.embed([0]).dtype


@pytest.mark.parametrize("name", ["draft_model", "pearl", "llmcad", "continuous"])
def test_no_model_there(target: Network, tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelNotFound, match="no draft model"):
        made(name, target, {"model": str(tmp_path / "nothing")})


def test_a_draft_model_must_be_named(target: Network) -> None:
    with pytest.raises(SpecError, match="needs a draft model"):
        made("draft_model", target, {})


def test_weights_that_are_missing_or_broken(
    target: Network, tiny_path: Path, tmp_path: Path
) -> None:
    folder = copied(tiny_path, tmp_path / "draft")
    (folder / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(CapabilityError, match="cannot be read"):
        load_draft_model(target, str(folder))
    (folder / "model.safetensors").unlink()
    with pytest.raises(CapabilityError, match="cannot be read"):
        load_draft_model(target, str(folder))
    (folder / "config.json").write_text("{", "utf-8")
    with pytest.raises(CapabilityError, match="cannot be read"):
        load_draft_model(target, str(folder))


def test_another_vocabulary(target: Network, tiny_path: Path, tmp_path: Path) -> None:
    """Two tokens that have changed places: the sizes are the same, the drafts would be nonsense."""
    folder = copied(tiny_path, tmp_path / "draft")
    file = folder / "tokenizer.json"
    read = json.loads(file.read_text("utf-8"))
    words = read["model"]["vocab"]
    a, b = sorted(words, key=words.__getitem__)[40:42]
    words[a], words[b] = words[b], words[a]
    file.write_text(json.dumps(read), "utf-8")
    with pytest.raises(CapabilityError, match="for the draft model, ") as refused:
        load_draft_model(target, str(folder))
    assert refused.value.hint


def test_a_vocabulary_of_another_size(target: Network, tmp_path: Path) -> None:
    config = LlamaConfig(
        vocab_size=target.vocabulary_size + 1025,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(tmp_path)
    with pytest.raises(CapabilityError, match="tokens and the target"):
        load_draft_model(target, str(tmp_path))


def test_padding_is_no_difference() -> None:
    check_sizes(151_936, 152_064)
    with pytest.raises(CapabilityError):
        check_sizes(32_000, 49_152)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"model": {"vocab": {"a": "b"}}, "added_tokens": []}', '{"model": 3}']
)
def test_a_file_that_is_no_tokenizer(tiny_path: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer.json").write_text(text, "utf-8")
    with pytest.raises(CapabilityError, match="no tokenizer"):
        check_tokens(tiny_path, tmp_path, 10)


def test_vocabularies_of_pairs_and_further_tokens(tmp_path: Path) -> None:
    for name, words in (("a", [["x", -1.0], ["y", -2.0]]), ("b", {"x": 0, "y": 1})):
        (tmp_path / name).mkdir()
        added = [{"id": 2, "content": "z" + name}]
        read = {"model": {"vocab": words}, "added_tokens": added}
        (tmp_path / name / "tokenizer.json").write_text(json.dumps(read), "utf-8")
    check_tokens(tmp_path / "a", tmp_path / "b", 2)
    with pytest.raises(CapabilityError, match="token 2 is"):
        check_tokens(tmp_path / "a", tmp_path / "b", 3)
    check_tokens(tmp_path / "a", tmp_path, 3)
    check_tokens(None, tmp_path / "a", 3)


def test_as_many_layers_as_the_target_are_no_draft(target: Network) -> None:
    assert own_layers(target, 0).layers == 1
    assert own_layers(target, 2).layers == 2
    with pytest.raises(SpecError, match="layers"):
        own_layers(target, 3)
    with pytest.raises(SpecError, match="layers"):
        made("self_draft", target, {"layers": 3})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("self_draft", {"confidence": 1.5}),
        ("self_draft", {"sample": "yes"}),
        ("pearl", {"num_speculative_tokens": 0}),
        ("pearl", {"model": 3}),
        ("llmcad", {"threshold": -0.1}),
        ("llmcad", {"width": 0}),
        ("continuous", {"recovery": "much"}),
        ("pearl", {"unknown": 1}),
    ],
)
def test_options_that_cannot_be(
    target: Network, name: str, options: dict[str, str | int | float | bool]
) -> None:
    with pytest.raises(SpecError):
        made(name, target, options)
