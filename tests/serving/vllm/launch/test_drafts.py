"""Folders of heads, before vLLM gets them: how far they draft, or why it cannot load them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.serving.vllm.launch.engines import CUDA, DRAFTERS, drafter
from weft.core.errors import SpecError
from weft.serving.vllm.launch.decoders import parse_speculative, speculative_arguments
from weft.serving.vllm.launch.weights import ModelWeights


def told(folder: Path, decode: str) -> dict[str, Any]:
    found = speculative_arguments(
        parse_speculative(decode), CUDA, ModelWeights(str(folder), folder)
    )
    config: dict[str, Any] = json.loads(found[1])
    assert config["model"] == str(folder)
    return config


@pytest.mark.parametrize(
    ("name", "decode", "tokens"),
    [
        ("eagle3", "eagle3:x", 4),
        ("speculators", "eagle3:x", 5),
        ("speculators", "eagle3:x:2", 2),
        ("medusa", "medusa:x", 3),
        ("dflash", "dflash:x", 15),
        ("dflash", "dflash:x:7", 7),
    ],
)
def test_a_head_says_how_far_it_drafts(name: str, decode: str, tokens: int, tmp_path: Path) -> None:
    config = told(drafter(tmp_path, name, DRAFTERS[name]), decode)
    assert config["num_speculative_tokens"] == tokens
    assert config["method"] == decode.split(":")[0]


@pytest.mark.parametrize(
    ("config", "decode", "said"),
    [
        (DRAFTERS["dflash"], "eagle3:x", "no draft_vocab_size"),
        (DRAFTERS["eagle3"], "dflash:x", "no target_layer_ids"),
        (DRAFTERS["eagle3"], "medusa:x", "num_heads"),
        (DRAFTERS["speculators"], "dflash:x", "speculators_model_type"),
        ({"model_type": "medusa"}, "medusa:x", "num_heads"),
        ({"weft_drafter": "eagle"}, "eagle3:x", "weft export-drafter"),
        ({"medusa_num_heads": 3, "medusa_num_layers": 1}, "medusa:x", "weft export-drafter"),
        (
            {
                "block_size": "16",
                **DRAFTERS["dflash"],
                "dflash_config": {"target_layer_ids": [1], "block_size": 1},
            },
            "dflash:x",
            "dflash_config.block_size",
        ),
    ],
)
def test_a_folder_of_another_kind_is_refused(
    config: dict[str, Any], decode: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError) as refused:
        told(drafter(tmp_path, "head", config), decode)
    assert said in f"{refused.value} {refused.value.hint}"
    assert str(tmp_path / "head") in str(refused.value)


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"config\.json"):
        told(tmp_path, "medusa:x")
