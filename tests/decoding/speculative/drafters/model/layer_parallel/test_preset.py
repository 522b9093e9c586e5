"""What EasySpec refuses, before a process is started."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM

from tests.serving.local.playback import EXACT
from weft.core.errors import CapabilityError, ModelNotFound, SpecError, WeftError
from weft.decoding.network import attention
from weft.decoding.network.network import Network
from weft.decoding.speculative.presets import Options, preset


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


def test_the_target_drafts_for_itself_where_nothing_is_given(network: Network) -> None:
    method = preset("easyspec").make(network, {"processes": False, "num_speculative_tokens": 3})
    drafter = method.begin()
    drafter.extend([5, 6, 7])
    (draft,) = method.propose([(drafter, method.nodes)])
    assert not isinstance(draft, BaseException)
    assert len(draft.tree) == 3
    method.close()


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"model": "/nowhere/to/be/found"}, ModelNotFound, "there is no draft model"),
        ({"group": 0}, SpecError, "group is 0"),
        ({"ranks": 65}, SpecError, "ranks is 65"),
        ({"processes": "yes"}, SpecError, "processes is 'yes'"),
        ({"layers": 4}, CapabilityError, "has 3 layers, not 4"),
    ],
)
def test_options_that_cannot_be(
    network: Network, options: Options, error: type[WeftError], says: str
) -> None:
    with pytest.raises(error, match=says):
        preset("easyspec").make(network, options)


def test_a_draft_model_with_other_tokens(network: Network, tiny_path: Path, tmp_path: Path) -> None:
    other = shutil.copytree(tiny_path, tmp_path / "other")
    file = other / "tokenizer.json"
    told = json.loads(file.read_text("utf-8"))
    vocabulary = told["model"]["vocab"]
    first, second = sorted(vocabulary, key=vocabulary.get)[20:22]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    file.write_text(json.dumps(told), "utf-8")
    with pytest.raises(CapabilityError, match="token 20 is"):
        preset("easyspec").make(network, {"model": str(other)})


def test_a_draft_model_that_knows_fewer_tokens(network: Network, tmp_path: Path) -> None:
    attention.register()
    model = AutoModelForCausalLM.from_pretrained(network.path)
    model.resize_token_embeddings(network.vocabulary_size - 5)
    model.save_pretrained(tmp_path / "fewer")
    with pytest.raises(CapabilityError, match="the draft model knows"):
        preset("easyspec").make(network, {"model": str(tmp_path / "fewer")})


def test_a_target_that_was_never_in_a_folder(network: Network) -> None:
    made = Network(network._model, EXACT)
    made.path = None
    with pytest.raises(SpecError, match="read from no folder"):
        preset("easyspec").make(made, {})
