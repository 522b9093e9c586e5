from __future__ import annotations

from pathlib import Path

import gguf
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.serving.local import tiny
from tests.serving.weights import gguf_file
from weft.core.errors import CapabilityError
from weft.core.values import Message
from weft.decoding.network.network import Network
from weft.serving.local import LocalOptions
from weft.serving.local.vocabulary import Vocabulary
from weft.serving.weights.catalogue import silent
from weft.serving.weights.convert import convert


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "weights.gguf"
    tokenizer = tiny.make_tokenizer()
    gguf_file.write(path, tiny.make_model(len(tokenizer)), tokenizer)
    return path


def test_a_converted_model_is_the_model(source: Path, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    convert(source, tmp_path, lambda *step: steps.append(step))
    tokenizer = tiny.make_tokenizer()
    original = tiny.make_model(len(tokenizer))
    weights = load_file(tmp_path / "model.safetensors")
    for name, tensor in original.state_dict().items():
        if name != "lm_head.weight":
            assert torch.equal(weights[name], tensor.to(torch.bfloat16)), name
    assert steps[-1] == ("convert", len(weights), len(weights))

    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    ids = torch.tensor([[5, 60, 7, 90, 11]])
    with torch.inference_mode():
        for parameter in original.parameters():
            parameter.copy_(parameter.to(torch.bfloat16))
        expected = original(ids).logits
        torch.testing.assert_close(loaded(ids).logits, expected, rtol=1e-4, atol=1e-4)
    assert loaded.generation_config.eos_token_id == 2


def test_the_tokenizer_and_its_template_survive(source: Path, tmp_path: Path) -> None:
    convert(source, tmp_path, silent)
    before, after = tiny.make_tokenizer(), AutoTokenizer.from_pretrained(tmp_path)
    text = "the quick 漢字 🎉 <|im_end|> 2024"
    assert after(text)["input_ids"] == before(text)["input_ids"]
    network = Network.load(tmp_path, LocalOptions(dtype="float32"))
    words = Vocabulary.load(tmp_path, network.vocabulary_size, network.generation.end_ids)
    ids = words.encode_chat((Message("user", "hi"),))
    assert words.end_ids == {2}
    assert (ids[0], ids.count(1), ids.count(2)) == (1, 2, 1)


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.gguf"
    writer = gguf.GGUFWriter(path, "mamba")
    writer.add_block_count(1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(CapabilityError, match="Llama"):
        convert(path, tmp_path / "out", silent)
